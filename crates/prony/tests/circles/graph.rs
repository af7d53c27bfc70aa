//! Which top-level module of a crate uses which.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use crate::tokens::{Token, end_of_group, follows, tokens_of};

/// Reads a source, where there is one.
pub(crate) type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// A path that some code names, from the root of the crate where it can be, and the name that it is given.
struct Named {
    path: Vec<String>,
    name: String,
    line: usize,
}

/// The code of one file that belongs to one top-level module. The root file is a module too.
struct Code {
    module: String,
    /// How far below the root: 0 in the root file, 1 in a top-level module.
    depth: usize,
    file: PathBuf,
    tokens: Vec<Token>,
}

/// What the root file declares.
#[derive(Default)]
struct Root {
    modules: BTreeSet<String>,
    /// Names that it imports or re-exports, with their modules.
    imports: BTreeMap<String, String>,
    items: BTreeSet<String>,
    /// Macros of modules with `#[macro_use]`: known without a path.
    macros: BTreeMap<String, String>,
}

/// Uses between top-level modules, each with one place where it is.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) modules: BTreeSet<String>,
    pub(crate) uses: BTreeMap<(String, String), String>,
    /// Paths from the root whose first name nobody declares: this reader has something to learn.
    pub(crate) unknown: Vec<String>,
}

impl Graph {
    /// Reads a crate from its root file.
    pub(crate) fn read(root_file: &Path, read: Read<'_>) -> Graph {
        let name = root_file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let mut codes = Vec::new();
        collect(read, root_file, &name, 0, &mut codes);
        let root = declared(&codes);
        let mut graph = Graph { modules: codes.iter().map(|code| code.module.clone()).collect(), ..Graph::default() };
        for code in &codes {
            graph.add(&root, &name, code);
        }
        graph
    }

    fn add(&mut self, root: &Root, root_name: &str, code: &Code) {
        let mut uses: Vec<(String, usize)> = Vec::new();
        for named in paths_in(code, root) {
            let Some(first) = named.path.first() else { continue };
            if root.modules.contains(first) {
                uses.push((first.clone(), named.line));
            } else if let Some(module) = root.imports.get(first) {
                uses.push((module.clone(), named.line));
            } else if first == "*" {
                uses.extend(root.imports.values().map(|module| (module.clone(), named.line)));
                uses.push((root_name.to_owned(), named.line));
            } else if root.items.contains(first) {
                uses.push((root_name.to_owned(), named.line));
            } else if !root.imports.contains_key(first) && code.depth > 0 {
                self.unknown.push(format!("{}:{}: crate::{first}", code.file.display(), named.line));
            }
        }
        for pair in code.tokens.windows(2) {
            if let (Some(module), "!") = (root.macros.get(&pair[0].text), pair[1].text.as_str()) {
                uses.push((module.clone(), pair[0].line));
            }
        }
        for (used, line) in uses.into_iter().filter(|(used, _)| !used.is_empty() && *used != code.module) {
            let place = format!("{}:{line}", code.file.display());
            self.uses.entry((code.module.clone(), used)).or_insert(place);
        }
    }

    /// The shortest circle through each module that is in one, each circle once.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let mut found: BTreeMap<BTreeSet<String>, Vec<String>> = BTreeMap::new();
        for mut circle in self.modules.iter().filter_map(|module| self.circle_through(module)) {
            let first = circle.iter().enumerate().min_by_key(|(_, module)| *module).map_or(0, |(at, _)| at);
            circle.rotate_left(first);
            found.entry(circle.iter().cloned().collect()).or_insert(circle);
        }
        let mut circles: Vec<Vec<String>> = found.into_values().collect();
        circles.sort_by_key(Vec::len);
        circles
    }

    fn circle_through(&self, start: &str) -> Option<Vec<String>> {
        let mut queue = VecDeque::from([vec![start.to_owned()]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = queue.pop_front() {
            let last = way.last()?;
            for (_, next) in self.uses.keys().filter(|(user, _)| user == last) {
                if next == start {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    queue.push_back([way.as_slice(), std::slice::from_ref(next)].concat());
                }
            }
        }
        None
    }

    /// A circle with the place of each use.
    pub(crate) fn describe(&self, circle: &[String]) -> String {
        let next = circle.iter().cycle().skip(1);
        let uses = circle.iter().zip(next).map(|(user, used)| {
            let place = &self.uses[&(user.clone(), used.clone())];
            format!("{user} uses {used} ({place})")
        });
        uses.collect::<Vec<_>>().join(", ")
    }
}

/// The code of a file and of the modules that it declares.
fn collect(read: Read<'_>, file: &Path, module: &str, depth: usize, codes: &mut Vec<Code>) {
    let text = read(file).unwrap_or_else(|| panic!("{} does not exist", file.display()));
    let is_own_folder = depth == 0 || file.file_name().is_some_and(|name| name == "mod.rs");
    let folder = if is_own_folder { file.parent().unwrap_or(file).to_owned() } else { file.with_extension("") };
    split(read, file, &folder, module, depth, &tokens_of(&text), codes);
}

fn split(
    read: Read<'_>,
    file: &Path,
    folder: &Path,
    module: &str,
    depth: usize,
    tokens: &[Token],
    codes: &mut Vec<Code>,
) {
    let mut own: Vec<Token> = Vec::new();
    let (mut i, mut path) = (0, None);
    while i < tokens.len() {
        let rest = &tokens[i..];
        if follows(rest, &["#", "[", "path", "="]) {
            path = rest.get(4).map(|token| token.text.trim_matches('"').to_owned());
        }
        // A macro that makes modules has `mod $name {`.
        let name_at = if follows(rest, &["mod", "$"]) { 2 } else { 1 };
        let sign = rest.get(name_at + 1).map_or("", |token| token.text.as_str());
        if rest[0].text != "mod" || !matches!(sign, ";" | "{") {
            own.push(tokens[i].clone());
            i += 1;
            continue;
        }
        let name = rest[name_at].text.clone();
        let inner = if depth == 0 { &name } else { module };
        // The declaration itself stays with the file that has it.
        own.extend(rest[..name_at + 1].iter().cloned());
        if sign == ";" {
            let named = path.take().map(|path| file.parent().unwrap_or(file).join(path));
            let usual = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
            let inner_file =
                named.unwrap_or_else(|| usual.iter().find(|path| read(path).is_some()).unwrap_or(&usual[0]).to_owned());
            collect(read, &inner_file, inner, depth + 1, codes);
            i += name_at + 1;
        } else {
            let end = end_of_group(tokens, i + name_at + 1);
            let body = &tokens[i + name_at + 2..end - 1];
            split(read, file, &folder.join(&name), inner, depth + 1, body, codes);
            own.push(Token { text: ";".to_owned(), line: tokens[end - 1].line });
            i = end;
        }
    }
    codes.push(Code { module: module.to_owned(), depth, file: file.to_owned(), tokens: own });
}

/// What the root file declares, at its own level.
fn declared(codes: &[Code]) -> Root {
    let mut root = Root::default();
    let Some(code) = codes.iter().find(|code| code.depth == 0) else { return root };
    let tokens = &code.tokens;
    let word = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let mut macro_users = BTreeSet::new();
    let mut uses = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        match word(i) {
            "mod" => {
                root.modules.insert(word(i + 1).to_owned());
                if i >= 4 && follows(&tokens[i - 4..], &["#", "[", "macro_use", "]"]) {
                    macro_users.insert(word(i + 1).to_owned());
                }
            }
            "use" => uses.extend(tree_at(tokens, i + 1)),
            "fn" | "struct" | "enum" | "trait" | "static" | "type" | "union" | "const" => {
                root.items.insert(word(i + 1).to_owned());
            }
            "macro_rules" => {
                root.items.insert(word(i + 2).to_owned());
            }
            // Bodies and the groups of a `use` declare nothing here.
            "{" | "(" | "[" => {
                i = end_of_group(tokens, i);
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    for named in uses {
        let path: Vec<&String> =
            named.path.iter().skip_while(|name| matches!(name.as_str(), "crate" | "self")).collect();
        // What comes from another crate is used, but of no module here.
        let module = path.first().filter(|first| root.modules.contains(**first)).map_or("", |first| first.as_str());
        root.imports.insert(named.name, module.to_owned());
    }
    for code in codes.iter().filter(|code| macro_users.contains(&code.module)) {
        for three in code.tokens.windows(3).filter(|three| follows(three, &["macro_rules", "!"])) {
            root.macros.insert(three[2].text.clone(), code.module.clone());
        }
    }
    root
}

/// Every path that leads to the root, without what leads there. Re-exports of the root file are no use.
fn paths_in(code: &Code, root: &Root) -> Vec<Named> {
    let tokens = &code.tokens;
    let mut found = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        if code.depth == 0 && tokens[i].text == "pub" {
            let after = if follows(&tokens[i + 1..], &["("]) { end_of_group(tokens, i + 1) } else { i + 1 };
            if follows(&tokens[after..], &["use"]) {
                i = after + tokens[after..].iter().take_while(|token| token.text != ";").count();
                continue;
            }
        }
        let first = tokens[i].text.as_str();
        let begins = i == 0 || tokens[i - 1].text != "::";
        let leads = matches!(first, "crate" | "super" | "self") || code.depth == 0 && root.modules.contains(first);
        if begins && leads && follows(&tokens[i + 1..], &["::"]) {
            found.extend(tree_at(tokens, i).into_iter().filter_map(|named| from_root(named, code.depth)));
        }
        // `use tree;` in the root file has no `::`.
        if code.depth == 0
            && first == "use"
            && tokens.get(i + 2).is_some_and(|token| matches!(token.text.as_str(), ";" | "as"))
        {
            found.extend(tree_at(tokens, i + 1).into_iter().filter(|named| root.modules.contains(&named.path[0])));
        }
        i += 1;
    }
    found
}

/// The path below the root; none where it stays inside the module.
fn from_root(mut named: Named, depth: usize) -> Option<Named> {
    let mut level = depth;
    let mut skipped = 0;
    for name in &named.path {
        match name.as_str() {
            "crate" => level = 0,
            "super" => level = level.checked_sub(1)?,
            "self" => {}
            _ => break,
        }
        skipped += 1;
    }
    named.path.drain(..skipped);
    (level == 0).then_some(named)
}

/// The paths of a tree such as `a::{b, c::{self, d as e}}`, or the one path of an expression.
fn tree_at(tokens: &[Token], start: usize) -> Vec<Named> {
    let mut found = Vec::new();
    tree(tokens, start, &[], &mut found);
    found
}

fn tree(tokens: &[Token], start: usize, before: &[String], found: &mut Vec<Named>) {
    let mut path = before.to_vec();
    let mut i = start;
    let Some(line) = tokens.get(start).map(|token| token.line) else { return };
    while let Some(token) = tokens.get(i) {
        if token.text == "{" {
            let end = end_of_group(tokens, i);
            let mut element = i + 1;
            while element + 1 < end {
                tree(&tokens[..end - 1], element, &path, found);
                element += length_of_element(&tokens[element..end - 1]);
            }
            return;
        }
        path.push(token.text.clone());
        if !follows(&tokens[i + 1..], &["::"]) {
            break;
        }
        i += 2;
        // `Vec::<T>::new`: what follows is of another path.
        if tokens.get(i).is_some_and(|token| token.text == "<") {
            break;
        }
    }
    let renamed = follows(&tokens[(i + 1).min(tokens.len())..], &["as"]).then(|| tokens.get(i + 2)).flatten();
    let name = renamed.map(|token| &token.text).or_else(|| path.iter().rev().find(|name| *name != "self"));
    let name = name.cloned().unwrap_or_default();
    found.push(Named { path, name, line });
}

/// How many tokens there are up to the element after the next comma.
fn length_of_element(tokens: &[Token]) -> usize {
    let mut i = 0;
    while i < tokens.len() {
        match tokens[i].text.as_str() {
            "," => return i + 1,
            "{" => i = end_of_group(tokens, i),
            _ => i += 1,
        }
    }
    i
}
