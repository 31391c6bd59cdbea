//! Modules of a crate do not depend on each other in circles.
//!
//! A folder counts as one module beside its siblings, at every level. A parent and its children may use
//! each other: `mod.rs` holds what its files share and puts them together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use super::{crates, rust_files};

/// A path of modules from the root of a crate.
type Module = Vec<String>;

/// Names all architectures, and finds them by name: every lookup goes through it.
const REGISTRY: &str = "registry";

/// Modules of a crate with their files.
fn modules(source: &Path) -> BTreeMap<Module, PathBuf> {
    let module = |file: PathBuf| {
        let relative = file.strip_prefix(source).unwrap().with_extension("");
        let mut path: Module =
            relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        let is_root = path.len() == 1 && matches!(&*path[0], "lib" | "main");
        if is_root || path.last().is_some_and(|name| name == "mod") {
            path.pop();
        }
        (path, file)
    };
    rust_files(source).into_iter().map(module).collect()
}

/// Paths that a file mentions, without its unit tests.
#[derive(Default)]
struct Mentions {
    paths: Vec<Vec<String>>,
    /// Last segment of an imported path to the whole path.
    imports: HashMap<String, Vec<String>>,
}

impl Mentions {
    fn flatten(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let join = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.flatten(&path.tree, &join(&path.ident)),
            syn::UseTree::Name(name) if name.ident == "self" => self.import(prefix.to_vec(), None),
            syn::UseTree::Name(name) => self.import(join(&name.ident), None),
            syn::UseTree::Rename(rename) => {
                self.import(join(&rename.ident), Some(rename.rename.to_string()));
            }
            syn::UseTree::Glob(_) => self.paths.push(prefix.to_vec()),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.flatten(tree, prefix));
            }
        }
    }

    fn import(&mut self, path: Vec<String>, alias: Option<String>) {
        let name = alias.or_else(|| path.last().cloned());
        self.imports.extend(name.map(|name| (name, path.clone())));
        self.paths.push(path);
    }
}

impl<'a> Visit<'a> for Mentions {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        let is_test = module.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"))
            && module.ident == "tests";
        if !is_test {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.flatten(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if segments.len() > 1 {
            self.paths.push(segments);
        }
        visit::visit_path(self, path);
    }
}

/// The module that a path mentioned in `module` leads to; `None` if it leaves the crate.
fn resolve(
    path: &[String],
    module: &Module,
    imports: &HashMap<String, Vec<String>>,
    modules: &BTreeMap<Module, PathBuf>,
) -> Option<Module> {
    let child = |base: &Module, name: &String| [&base[..], std::slice::from_ref(name)].concat();
    let (mut at, rest) = match &*path[0] {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => {
            let up = path.iter().take_while(|part| *part == "super").count();
            (module[..module.len().checked_sub(up)?].to_vec(), &path[up..])
        }
        _ if modules.contains_key(&child(module, &path[0])) => (module.clone(), path),
        first => {
            let imported = imports.get(first).filter(|imported| imported[0] != *first)?;
            let whole = [&imported[..], &path[1..]].concat();
            return resolve(&whole, module, imports, modules);
        }
    };
    for part in rest {
        let next = child(&at, part);
        if !modules.contains_key(&next) {
            break;
        }
        at = next;
    }
    Some(at)
}

/// Edges between siblings, by their parent.
fn siblings(source: &Path) -> BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> {
    let modules = modules(source);
    let mut edges: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, file) in &modules {
        let text = std::fs::read_to_string(file).unwrap();
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut mentions = Mentions::default();
        mentions.visit_file(&parsed);
        for path in &mentions.paths {
            let Some(target) = resolve(path, module, &mentions.imports, &modules) else { continue };
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            let (Some(from), Some(to)) = (module.get(common), target.get(common)) else { continue };
            if to != REGISTRY {
                let parent = edges.entry(module[..common].to_vec()).or_default();
                parent.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    edges
}

/// A circle among siblings, if there is one.
fn circle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit(
        node: &str,
        edges: &BTreeMap<String, BTreeSet<String>>,
        trail: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = trail.iter().position(|name| name == node) {
            return Some(trail[start..].to_vec());
        }
        if !done.insert(node.to_owned()) {
            return None;
        }
        trail.push(node.to_owned());
        let found =
            edges.get(node).into_iter().flatten().find_map(|to| visit(to, edges, trail, done));
        trail.pop();
        found
    }
    let mut done = BTreeSet::new();
    edges.keys().find_map(|node| visit(node, edges, &mut Vec::new(), &mut done))
}

#[test]
fn modules_have_no_circles() {
    let mut found = Vec::new();
    for folder in crates() {
        for (parent, edges) in siblings(&folder.join("src")) {
            if let Some(circle) = circle(&edges) {
                let name = folder.file_name().unwrap().to_str().unwrap();
                found.push(format!("{name}::{}: {}", parent.join("::"), circle.join(" -> ")));
            }
        }
    }
    assert_eq!(found, [""; 0], "move what both need to a module of its own, or to their parent");
}

#[test]
fn a_circle_is_found() {
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let edge = |from: &str, to: &[&str]| (from.to_owned(), set(to));
    let edges = BTreeMap::from([edge("a", &["b"]), edge("b", &["c"]), edge("c", &["b"])]);
    assert_eq!(circle(&edges), Some(vec!["b".to_owned(), "c".to_owned()]));
    let edges = BTreeMap::from([edge("a", &["b", "c"]), edge("b", &["c"])]);
    assert_eq!(circle(&edges), None);
}
