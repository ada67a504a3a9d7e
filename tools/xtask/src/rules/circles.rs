// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that need each other in a circle; a module and its inner ones may.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use syn::{
    Attribute, ItemMod, ItemUse, UseTree,
    visit::{self, Visit},
};

use crate::{
    error::{Error, Result},
    files,
    repository::root,
    workspace::Crate,
};

type ModulePath = Vec<String>;

pub(super) fn found(crates: &[Crate]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for one in crates {
        let source = root().join(&one.folder).join("src");
        if !source.is_dir() {
            continue;
        }
        let mut files = BTreeMap::new();
        read(&source, &mut Vec::new(), &mut files)?;
        for circle in circles(&arrows(&files)) {
            complaints.push(format!(
                "files of {} need each other in a circle: {}",
                one.folder,
                circle.join(", ")
            ));
        }
    }
    Ok(complaints)
}

fn read(
    folder: &Path,
    place: &mut ModulePath,
    files: &mut BTreeMap<ModulePath, syn::File>,
) -> Result<()> {
    for path in files::entries(folder)? {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if stem == "tests" || stem == "bin" {
            continue;
        }
        place.push(stem.to_string());
        if path.is_dir() {
            read(&path, place, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = files::text(&path)?;
            let parsed = syn::parse_file(&text)
                .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
            let mut module = place.clone();
            if ["mod", "lib", "main"].contains(&stem.as_ref()) {
                module.pop();
            }
            files.insert(module, parsed);
        }
        place.pop();
    }
    Ok(())
}

fn arrows(files: &BTreeMap<ModulePath, syn::File>) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
    let mut all = BTreeMap::new();
    for (module, file) in files {
        let mut names = Names {
            place: module.clone(),
            found: Vec::new(),
        };
        names.visit_file(file);
        let targets = names.found.iter().filter_map(|path| {
            (1..=path.len())
                .rev()
                .map(|length| path[..length].to_vec())
                .find(|module| files.contains_key(module))
        });
        let others =
            targets.filter(|target| !target.starts_with(module) && !module.starts_with(target));
        all.insert(module.clone(), others.collect());
    }
    all
}

struct Names {
    place: ModulePath,
    found: Vec<ModulePath>,
}

impl Names {
    fn name(&mut self, path: &[String]) {
        let mut place = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.place.clone(),
            _ => return,
        };
        for part in path {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => drop(place.pop()),
                _ => place.push(part.clone()),
            }
        }
        self.found.push(place);
    }

    fn tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, before);
                }
            }
            UseTree::Name(name) => self.leaf(&name.ident, before),
            UseTree::Rename(name) => self.leaf(&name.ident, before),
            UseTree::Glob(_) => self.name(before),
        }
    }

    fn leaf(&mut self, name: &syn::Ident, before: &mut Vec<String>) {
        before.push(name.to_string());
        self.name(before);
        before.pop();
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if item.content.is_none() || item.attrs.iter().any(is_for_tests) {
            return;
        }
        self.place.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.place.pop();
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.tree(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let parts: Vec<String> = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        self.name(&parts);
        visit::visit_path(self, path);
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<syn::Ident>()
            .is_ok_and(|what| what == "test")
}

fn circles(arrows: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = arrows
        .keys()
        .map(|start| {
            let mut reached = BTreeSet::new();
            let mut next = vec![start];
            while let Some(module) = next.pop() {
                for target in arrows.get(module).into_iter().flatten() {
                    if reached.insert(target) {
                        next.push(target);
                    }
                }
            }
            (start, reached)
        })
        .collect();
    let mut circles = BTreeSet::new();
    for (module, targets) in &reached {
        if targets.contains(module) {
            let back =
                |other: &&&ModulePath| reached.get(**other).is_some_and(|all| all.contains(module));
            let circle: Vec<String> = targets
                .iter()
                .filter(back)
                .map(|path| path.join("::"))
                .collect();
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files = files.iter().map(|(place, text)| {
            let place = place.split("::").filter(|part| !part.is_empty());
            (
                place.map(str::to_string).collect(),
                syn::parse_file(text).expect("source"),
            )
        });
        circles(&arrows(&files.collect()))
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        let files = [
            ("", "mod a; mod b; mod c;"),
            ("a", "use crate::{b::{self, B}, c}; "),
            ("b", "fn f(thing: super::c::Thing) {}"),
            ("c", "impl C { fn g(&self) { crate::a::h() } }"),
        ];
        assert_eq!(of(&files), [["a", "b", "c"]]);
    }

    #[test]
    fn parents_tests_and_one_way_are_none() {
        let files = [
            ("", "mod a; mod b; use a::x;"),
            ("a", "pub mod inner; use inner::X; use crate::b::Y;"),
            ("a::inner", "use super::Z; use crate::root;"),
            ("b", "#[cfg(test)] mod tests { use crate::a::x; }"),
        ];
        assert!(of(&files).is_empty());
    }
}
