//! The commands that look at files.

use crate::session::Session;

#[test]
fn failures() {
    let mut session = Session::new();
    std::fs::write(session.path("page.gguf"), "<!DOCTYPE html>\n<html>404</html>\n").unwrap();
    session.run("inspect missing.gguf").run("inspect page.gguf").is("failures");
}
