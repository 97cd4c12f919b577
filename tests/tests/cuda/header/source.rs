//! The driver's functions and numbers in our own sources, read as text. Tables are written in one
//! way, and where one is not, reading fails.

/// A function as Rust calls it or exports it.
#[derive(Debug)]
pub(crate) struct Function {
    /// Its name in the library; an older one may follow.
    pub(crate) names: Vec<String>,
    /// The types of its parameters.
    pub(crate) params: Vec<String>,
}

/// The parts of a list, each in one line, without the comma after the last. `Out<'_, T>` is one.
fn list(text: &str) -> Vec<String> {
    let text = text.replace("<'_, ", "<");
    let part = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split(',').map(part).filter(|part| !part.is_empty()).collect()
}

/// The text between the first `from` and the `to` after it.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    text.split_once(from)
        .and_then(|(_, rest)| rest.split_once(to))
        .unwrap_or_else(|| panic!("no {from:?} … {to:?}"))
        .0
}

/// The table of `abi.rs`: `name: [c"cuNewest", c"cuOlder"](types);`.
pub(crate) fn table(text: &str) -> Vec<Function> {
    let code: String = between(text, "\nfunctions! {\n", "\n}\n")
        .lines()
        .filter(|line| !line.trim().starts_with("///"))
        .collect();
    let entries = code.split(';').map(str::trim).filter(|entry| !entry.is_empty());
    let function = |entry: &str| Function {
        names: list(between(entry, "[", "]"))
            .iter()
            .map(|name| between(name, "c\"", "\"").to_owned())
            .collect(),
        params: list(between(entry, "](", ")")),
    };
    let found: Vec<_> = entries.map(function).collect();
    assert_eq!(
        found.iter().map(|function| function.names.len()).sum::<usize>(),
        code.matches("c\"cu").count(),
        "{found:?}"
    );
    found
}

/// `type Name = Other;`, each.
pub(crate) fn aliases(text: &str) -> Vec<(&str, &str)> {
    let defined = text.lines().filter_map(|line| {
        line.split_once("type ")
            .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))
    });
    defined
        .map(|(_, rest)| rest.strip_suffix(';').and_then(|rest| rest.split_once(" = ")).unwrap())
        .collect()
}

/// A number with a name.
#[derive(Debug)]
pub(crate) struct Constant<'t> {
    /// The innermost module that it is in, if it is in one.
    pub(crate) module: &'t str,
    pub(crate) name: &'t str,
    pub(crate) value: &'t str,
}

/// Every `const NAME: TYPE = VALUE;`, which is a line.
pub(crate) fn constants(text: &str) -> Vec<Constant<'_>> {
    let (mut module, mut found) = ("", Vec::new());
    for line in text.lines() {
        let item = line
            .trim()
            .split_once("const ")
            .filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        if let Some((_, name)) = line.split_once("mod ") {
            module = name.strip_suffix(" {").unwrap_or(module);
        } else if line == "}" {
            module = "";
        } else if let Some((_, rest)) =
            item.filter(|(_, rest)| !rest.starts_with("fn ") && !rest.starts_with('_'))
        {
            let (name, rest) = rest.split_once(": ").unwrap();
            let value = rest
                .split_once(" = ")
                .and_then(|(_, value)| value.strip_suffix(';'))
                .unwrap_or_else(|| panic!("{line}"));
            found.push(Constant { module, name, value });
        }
    }
    found
}

/// A C declaration in a comment, and the Rust function or function type that comes next.
#[derive(Debug)]
pub(crate) struct Documented<'t> {
    pub(crate) name: &'t str,
    /// As C has them, names included.
    pub(crate) declared: Vec<String>,
    pub(crate) rust: Vec<String>,
}

/// Every ``/// `CUresult cuName(…)` `` and what follows it.
pub(crate) fn documented(text: &str) -> Vec<Documented<'_>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("/// `CUresult cu") {
        let rest = text.get(at..).unwrap();
        let name = between(rest, "CUresult ", "(");
        let declared = list(&between(rest, "(", ")").replace("///", ""))
            .into_iter()
            .filter(|param| param != "void")
            .collect();
        let code: String = rest.lines().skip_while(|line| line.trim().starts_with("///")).collect();
        let rust = list(between(code.get(code.find("fn").unwrap()..).unwrap(), "(", ")"));
        found.push(Documented { name, declared, rust });
    }
    found
}
