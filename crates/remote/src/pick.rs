//! The one model among the files of a folder, whatever kind of folder it is.

use crate::error::Error;

/// The only GGUF file among `names` that contains `part`, case ignored; of one model in several
/// files, the first.
///
/// # Errors
/// [`Error::Choice`] with the GGUF files of `place` if there is none or more than one.
pub(crate) fn pick(place: String, names: Vec<String>, part: &str) -> Result<String, Error> {
    let part = part.to_lowercase();
    let is_gguf = |name: &String| name.to_lowercase().ends_with(".gguf");
    let mut names: Vec<String> = names.into_iter().filter(is_gguf).collect();
    names.sort();
    let mut wanted = names.iter().filter(|name| name.to_lowercase().contains(&part));
    // Sorted, so the first shard of a complete set comes before the others.
    if let Some(first) = wanted.next()
        && wanted.all(|name| shard_set(name).is_some_and(|set| Some(set) == shard_set(first)))
    {
        return Ok(first.clone());
    }
    Err(Error::Choice { place, names })
}

/// What the names of all files of one split model share: what stands before the number of the
/// file, and their count, as in `model-00001-of-00003.gguf`.
fn shard_set(name: &str) -> Option<(&str, &str)> {
    let (stem, count) = name.get(..name.len() - ".gguf".len())?.rsplit_once("-of-")?;
    let (stem, number) = stem.rsplit_once('-')?;
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(number) && is_number(count)).then_some((stem, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_model_is_found() {
        let pick = |names: &[&str], part: &str| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            match pick("here".into(), names, part) {
                Ok(name) => name,
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(pick(&["README.md", "a.GGUF"], ""), "a.GGUF");
        assert_eq!(pick(&["README.md"], ""), "here holds no GGUF file");
        let two = ["m-Q4_K_M.gguf", "m-Q8_0.gguf"];
        assert_eq!(pick(&two, "q8_0"), "m-Q8_0.gguf");
        let asked = "here holds 2 GGUF files, name one of them:\n  m-Q4_K_M.gguf\n  m-Q8_0.gguf";
        assert_eq!(pick(&two, ""), asked);
        assert_eq!(pick(&two, "F16"), asked);
        let shards = ["q/m-00002-of-00002.gguf", "q/m-00001-of-00002.gguf"];
        assert_eq!(pick(&shards, ""), shards[1]);
        assert!(pick(&["m-00001-of-00002.gguf", "n-00001-of-00002.gguf"], "").contains("name one"));
    }
}
