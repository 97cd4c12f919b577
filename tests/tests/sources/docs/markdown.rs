//! The documents of the repository, as a reader of Markdown sees them: headings, links, code.
//!
//! Tests in other packages include this file, to try the commands of their own programs.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One document.
pub(crate) struct Page {
    /// From the root of the repository.
    pub(crate) path: String,
    /// The names by which links reach its headings.
    pub(crate) anchors: BTreeSet<String>,
    /// Each with its line.
    pub(crate) links: Vec<(usize, String)>,
    /// Code between backquotes in a sentence, each with the line of its paragraph.
    pub(crate) spans: Vec<(usize, String)>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) lines: Vec<String>,
}

/// Code between fences.
pub(crate) struct Block {
    /// Of its first fence.
    pub(crate) line: usize,
    /// The first word behind the fence.
    pub(crate) language: String,
    /// Without the fences, and without the indent that all of its lines have.
    pub(crate) text: Vec<String>,
}

/// The repository's root, of a package that is so many folders below it.
pub(crate) fn root(package: &str, below: usize) -> PathBuf {
    Path::new(package).ancestors().nth(below).unwrap_or(Path::new("")).to_owned()
}

/// All files with one of these extensions, without what was built.
pub(crate) fn files(root: &Path, extensions: &[&str]) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap_or_default());
            let hidden =
                name.starts_with('.') && ![".ci", ".cargo", ".github"].contains(&name.as_str());
            if hidden
                || path.is_symlink()
                || ["target", "gpu-report", "corpus"].contains(&name.as_str())
            {
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
            if path.is_dir() {
                folders.push(path);
            } else if let (true, Ok(below)) =
                (extensions.contains(&extension), path.strip_prefix(root))
            {
                found.push(below.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn pages(root: &Path) -> Vec<Page> {
    files(root, &["md"])
        .into_iter()
        .map(|path| page(&fs::read_to_string(root.join(&path)).unwrap_or_default(), path))
        .collect()
}

pub(crate) fn page(text: &str, path: String) -> Page {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut page = Page {
        path,
        anchors: BTreeSet::new(),
        links: Vec::new(),
        spans: Vec::new(),
        blocks: Vec::new(),
        lines,
    };
    let (mut fence, mut paragraph): (Option<Block>, (usize, String)) = (None, (0, String::new()));
    let lines = page.lines.clone();
    for (number, line) in lines.iter().enumerate().map(|(at, line)| (at + 1, line)) {
        let inner = line.trim_start();
        if let Some(info) = inner.strip_prefix("```") {
            match fence.take() {
                Some(block) => page.blocks.push(dedented(block)),
                None => {
                    let language = info.split_whitespace().next().unwrap_or("").to_owned();
                    fence = Some(Block { line: number, language, text: Vec::new() });
                }
            }
        } else if let Some(block) = &mut fence {
            block.text.push(line.clone());
            continue;
        }
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') && fence.is_none() {
            let (slug, mut count) = (slug(heading), 0);
            while !page.anchors.insert(if count == 0 {
                slug.clone()
            } else {
                format!("{slug}-{count}")
            }) {
                count += 1;
            }
        }
        if inner.is_empty() || inner.starts_with("```") || inner.starts_with('|') {
            sentence(&mut page, &std::mem::take(&mut paragraph));
        }
        if !inner.starts_with("```") {
            paragraph = (
                if paragraph.1.is_empty() { number } else { paragraph.0 },
                paragraph.1 + " " + inner,
            );
        }
    }
    sentence(&mut page, &paragraph);
    page
}

/// Links and code of a paragraph.
fn sentence(page: &mut Page, (line, text): &(usize, String)) {
    let mut prose = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 0 { prose += part } else { page.spans.push((*line, part.to_owned())) }
    }
    for behind in prose.split("](").skip(1) {
        page.links.extend(behind.split(')').next().map(|target| (*line, target.to_owned())));
    }
}

/// A heading's name in an address, as GitHub makes it.
fn slug(heading: &str) -> String {
    let text = heading.trim().to_lowercase();
    text.chars()
        .filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn dedented(mut block: Block) -> Block {
    block.text = dedent(&block.text);
    block
}

/// The lines without the indent that all of them have.
pub(crate) fn dedent(lines: &[String]) -> Vec<String> {
    let indent = |line: &String| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.iter().map(|line| line.get(least..).unwrap_or("").trim_end().to_owned()).collect()
}

/// The commands of a page: in blocks `sh`, and between backquotes where they begin as one.
pub(crate) fn commands(page: &Page) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for block in page.blocks.iter().filter(|block| block.language == "sh") {
        let mut whole = String::new();
        for (at, line) in block.text.iter().enumerate() {
            whole += line.split(" #").next().unwrap_or("");
            if whole.ends_with('\\') {
                whole.pop();
            } else if !whole.starts_with('#') {
                split(&std::mem::take(&mut whole), block.line + 1 + at, &mut found);
            }
            if whole.starts_with('#') {
                whole.clear();
            }
        }
    }
    for (line, span) in &page.spans {
        if ["cargo ", "contigo "].iter().any(|program| span.starts_with(program))
            && !span.contains(" = ")
        {
            split(span, *line, &mut found);
        }
    }
    found
}

/// A line's commands, without variables before them, and what ssh runs elsewhere by itself.
fn split(line: &str, number: usize, found: &mut Vec<(usize, Vec<String>)>) {
    let mut quoted = false;
    let ends = |letter: char| {
        quoted ^= letter == '\'';
        !quoted && [';', '|', '&'].contains(&letter)
    };
    for command in line.split(ends) {
        let words =
            command.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned());
        let words: Vec<String> = words.skip_while(|word| is_assignment(word)).collect();
        let skipped = match words.first().map(String::as_str) {
            // `ssh board …`, or `ssh -t board …`.
            Some("ssh") => 2 + words.iter().filter(|word| *word == "-t").count(),
            _ => 0,
        };
        let words = words.get(skipped..).unwrap_or_default().to_vec();
        if !words.is_empty() {
            found.push((number, words));
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|letter| {
                letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'
            })
    })
}

/// The arguments of a command that runs `tool`: by Cargo's alias, or by its own name.
pub(crate) fn arguments(words: &[String], tool: &str) -> Option<Vec<String>> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match (tool, word(0), word(1)) {
        ("contigo", "cargo", "demo") => words.get(1..),
        ("contigo", "cargo", "contigo") | ("cross", "cargo", "cross") | ("lab", "cargo", "lab") => {
            words.get(2..)
        }
        ("contigo", "contigo" | "./contigo", _) => words.get(1..),
        _ => None,
    }
    .map(<[String]>::to_vec)
}

/// A command's help.
fn help(program: &Path, command: &[&String]) -> Result<String, String> {
    let output = std::process::Command::new(program)
        .args(command)
        .arg("--help")
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fails where `program` has no such command or option, by its own `--help`.
pub(crate) fn known(program: &Path, args: &[String]) -> Result<(), String> {
    let mut command: Vec<_> = args.iter().take(1).filter(|arg| !arg.starts_with('-')).collect();
    let mut help = help(program, &command)?;
    // A command that has commands of its own: `contigo fpga load`.
    let own = help.split_once("\nCommands:\n").is_some_and(|(_, list)| {
        let listed = |line: &str| {
            args.get(1).is_some_and(|arg| {
                line.split_whitespace().next() == Some(arg) && line.starts_with("  ")
            })
        };
        list.lines().any(listed)
    });
    if own && !command.is_empty() {
        command.extend(args.get(1));
        help = self::help(program, &command)?;
    }
    let options = help.split(|letter: char| letter.is_whitespace() || ",[]<>=".contains(letter));
    let options: BTreeSet<_> = options.filter(|word| word.starts_with('-')).collect();
    let own = args.iter().take_while(|arg| *arg != "--").filter(|arg| arg.starts_with('-'));
    match own.map(|arg| arg.split('=').next().unwrap_or("")).find(|arg| !options.contains(arg)) {
        Some(unknown) => Err(format!("{command:?} has no option {unknown}")),
        None => Ok(()),
    }
}

/// Tries every command of every page that runs `tool`, which is `program`. Returns how many.
pub(crate) fn try_commands(root: &Path, tool: &str, program: &Path) -> Result<usize, String> {
    let (mut tried, mut wrong) = (0, String::new());
    for page in pages(root).iter().filter(|page| page.path != "CHANGELOG.md") {
        for (line, words) in commands(page) {
            let Some(args) = arguments(&words, tool) else { continue };
            tried += 1;
            if let Err(why) = known(program, &args) {
                wrong += &format!("{}:{line}: {}: {why}\n", page.path, words.join(" "));
            }
        }
    }
    if wrong.is_empty() { Ok(tried) } else { Err(wrong) }
}
