//! Panics of dependencies that libraries turn into errors.

/// Crates whose panics are caught: an error follows, which says what is wrong with the file.
const CAUGHT: [&str; 2] = ["/symphonia-", "/tokenizers-"];

/// Prints no message for panics of these crates.
pub fn silence() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_caught = panic.location().is_some_and(|place| {
            let file = place.file().replace('\\', "/");
            CAUGHT.iter().any(|name| file.contains(name))
        });
        if !is_caught {
            print(panic);
        }
    }));
}
