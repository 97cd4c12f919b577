//! NVIDIA's `cuda.h`, compiled, says the same as the runtime's table
//! (`runtime/core/src/cuda/abi.rs`), which is read as text: every name, every parameter and every
//! number is compared. `tests/cuda/get` puts the headers into the cache.

use contigo::cuda::code_name;
use contigo_testkit::{emulated, nvidia};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ABI: &str = include_str!("../../../runtime/core/src/cuda/abi.rs");
/// Those that `tests/cuda/get` gets.
const VERSIONS: [&str; 3] = ["11.8", "12.9", "13.5"];

/// The types of `abi.rs`, as `cuda.h` calls them.
const TYPES: [(&str, &str); 17] = [
    ("c_char", "char"),
    ("c_int", "int"),
    ("c_uint", "unsigned int"),
    ("c_void", "void"),
    ("usize", "size_t"),
    ("u64", "unsigned long long"),
    ("CuResult", "CUresult"),
    ("CuDevice", "CUdevice"),
    ("CuDevicePtr", "CUdeviceptr"),
    ("CuContext", "CUcontext"),
    ("CuStream", "CUstream"),
    ("CuEvent", "CUevent"),
    ("CuModule", "CUmodule"),
    ("CuFunction", "CUfunction"),
    ("CuDeviceAttribute", "CUdevice_attribute"),
    ("CuPointerAttribute", "CUpointer_attribute"),
    ("CuJitOption", "CUjit_option"),
];

/// A Rust type in C.
fn in_c(rust: &str) -> String {
    if let Some(to) = rust.strip_prefix("*mut ") {
        return format!("{} *", in_c(to));
    }
    if let Some(to) = rust.strip_prefix("*const ") {
        return format!("{} const *", in_c(to));
    }
    let known = TYPES.iter().find(|(name, _)| *name == rust);
    known.unwrap_or_else(|| panic!("{rust} has no name in C")).1.to_owned()
}

/// The names in `cuda.h` of a constant, by the module that it is in and its name.
fn names_in_c(module: &str, name: &str) -> Vec<String> {
    match (module, name) {
        ("pointer", "HOST") => vec!["CU_MEMORYTYPE_HOST".into()],
        ("pointer", name) => vec![format!("CU_POINTER_ATTRIBUTE_{name}")],
        ("attribute", name) => vec![format!("CU_DEVICE_ATTRIBUTE_{name}")],
        (_, "PORTABLE") => {
            vec!["CU_MEMHOSTALLOC_PORTABLE".into(), "CU_MEMHOSTREGISTER_PORTABLE".into()]
        }
        (_, "DEVICE_MAP") => {
            vec!["CU_MEMHOSTALLOC_DEVICEMAP".into(), "CU_MEMHOSTREGISTER_DEVICEMAP".into()]
        }
        (_, "WRITE_COMBINED") => vec!["CU_MEMHOSTALLOC_WRITECOMBINED".into()],
        (_, "NON_BLOCKING") => vec!["CU_STREAM_NON_BLOCKING".into()],
        (_, "DISABLE_TIMING") => vec!["CU_EVENT_DISABLE_TIMING".into()],
        (_, name @ ("NOT_READY" | "INVALID_CONTEXT")) => vec![format!("CUDA_ERROR_{name}")],
        (_, name) => vec![format!("CU_{name}")],
    }
}

/// The text between the first `from` and the `to` after it.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let found = text.split_once(from).and_then(|(_, rest)| rest.split_once(to));
    found.unwrap_or_else(|| panic!("no {from:?} … {to:?}")).0
}

/// The parts of a list, without the comma after the last.
fn list(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The entries of the table, `name: [c"cuNewest", c"cuOlder"](types);`: names and types of each.
fn table() -> Vec<(Vec<String>, Vec<String>)> {
    let lines = between(ABI, "\nfunctions! {\n", "\n}\n").lines();
    let code: String = lines.filter(|line| !line.trim().starts_with("///")).collect();
    let entries = code.split(';').map(str::trim).filter(|entry| !entry.is_empty());
    let entry = |entry: &str| {
        let names = list(between(entry, "[", "]"));
        let names = names.iter().map(|name| between(name, "c\"", "\"").to_owned()).collect();
        (names, list(between(entry, "](", ")")).into_iter().map(in_c).collect())
    };
    entries.map(entry).collect()
}

/// Every `const NAME: TYPE = VALUE;`, which is a line: its names in C, and its value.
fn constants() -> Vec<(Vec<String>, &'static str)> {
    let (mut module, mut found) = ("", Vec::new());
    for line in ABI.lines() {
        if let Some((_, name)) = line.split_once("mod ") {
            module = name.strip_suffix(" {").unwrap_or(module);
        } else if line == "}" {
            module = "";
        } else if let Some((before, rest)) = line.trim().split_once("const ")
            && before.starts_with("pub")
            && !rest.starts_with("fn ")
        {
            let (name, rest) = rest.split_once(": ").unwrap();
            found.push((names_in_c(module, name), between(rest, " = ", ";")));
        }
    }
    found
}

/// `type Name = Other;`, each.
fn aliases() -> Vec<(&'static str, &'static str)> {
    let defined = ABI.lines().filter_map(|line| line.strip_prefix("pub(super) type "));
    defined
        .map(|rest| rest.strip_suffix(';').and_then(|rest| rest.split_once(" = ")).unwrap())
        .collect()
}

/// The headers, or none, with the reason said, where `test` cannot run. Where one of them is not
/// here, that is said.
fn headers(test: &str) -> Vec<PathBuf> {
    let compiler = Command::new("cc").arg("--version").output();
    let found = nvidia::headers();
    let why = match emulated::why() {
        Some(why) => format!("the compiler is not for this processor: {why}"),
        None if compiler.is_err() => "there is no C compiler (cc) here".into(),
        None if found.is_empty() => nvidia::NOT_HERE.into(),
        None => {
            for version in VERSIONS.iter().filter(|version| of_cuda(version, &found).is_none()) {
                let test = format!("cuda header::{test}, CUDA {version}");
                contigo_testkit::skipped(&test, nvidia::NOT_HERE);
            }
            return found;
        }
    };
    contigo_testkit::skipped(&format!("cuda header::{test}"), &why);
    Vec::new()
}

/// One of the headers.
fn of_cuda<'h>(version: &str, headers: &'h [PathBuf]) -> Option<&'h PathBuf> {
    let folder =
        |header: &&PathBuf| header.parent().and_then(Path::file_name).map(|name| name.to_owned());
    headers.iter().find(|header| folder(header).unwrap().to_string_lossy().starts_with(version))
}

/// Compiles assertions of C with the header.
fn compile(header: &Path, before: &str, asserts: &str) {
    const SAME: &str = "#define SAME(f, ...) _Static_assert(__builtin_types_compatible_p(\
                        __typeof__(f), CUresult (__VA_ARGS__)), #f)";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("check.c");
    let text = format!("{before}\n#include \"{}\"\n{SAME}\n{asserts}", header.display());
    fs::write(&file, text).unwrap();
    let options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
    let output = Command::new("cc").args(options).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", header.display());
}

#[test]
fn the_runtime_s_table_is_the_header_s() {
    /// Turns off the macros that rename functions, and declares the old ones too.
    const NO_MACROS: &str = "#define __CUDA_API_VERSION_INTERNAL";
    let mut declared = String::new();
    let mut chosen = "#define TEXT(x) #x\n#define CHOSEN(x) TEXT(x)\n".to_owned();
    for (name, rust) in aliases() {
        let (c, size) = (in_c(name), if rust == "c_int" { 4 } else { 8 });
        writeln!(declared, "_Static_assert(sizeof({c}) == {size}, \"{name}\");").unwrap();
        if rust.starts_with('*') {
            let function = format!("void *pointer_{name}({c} x)");
            writeln!(declared, "{function};\n{function} {{ return x; }}").unwrap();
        }
    }
    let table = table();
    assert_eq!(table.len(), 33, "the runtime's functions, each in the one table that is read");
    for (names, params) in table {
        for name in &names {
            writeln!(declared, "SAME({name}, {});", params.join(", ")).unwrap();
        }
        let newest = &names[0];
        let base = newest.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let base = base.strip_suffix("_v").unwrap_or(newest);
        let is_chosen = format!("__builtin_strcmp(CHOSEN({base}), \"{newest}\") == 0");
        writeln!(chosen, "_Static_assert({is_chosen}, \"{newest}\");").unwrap();
    }
    for (names, value) in constants() {
        for name in names {
            writeln!(declared, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
        }
    }
    for header in headers("the_runtime_s_table_is_the_header_s") {
        compile(&header, NO_MACROS, &declared);
        compile(&header, "", &chosen);
    }
}

/// `CUresult`, as the preprocessor leaves it.
fn results(header: &Path) -> BTreeMap<i32, String> {
    let output = Command::new("cc").args(["-E", "-P"]).arg(header).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let entries = list(between(&text, "typedef enum cudaError_enum {", "} CUresult;"));
    let entry = |entry: &&str| {
        let (name, value) = entry.split_once('=').unwrap();
        (value.trim().parse().unwrap(), name.trim().to_owned())
    };
    entries.iter().map(entry).collect()
}

#[test]
fn results_are_the_newest_header_s_and_no_others() {
    let headers = headers("results_are_the_newest_header_s_and_no_others");
    let Some(newest) = of_cuda("13.5", &headers) else { return };
    let expected = results(newest);
    assert!(expected.len() > 100, "{expected:?}");
    for code in -1_000..1_000_000 {
        let name =
            expected.get(&code).map_or("an error that cuda.h 13 does not have", String::as_str);
        assert_eq!(code_name(code), name, "{code} in {}", newest.display());
    }
    for header in &headers {
        for (code, name) in results(header) {
            assert_eq!(code_name(code), name, "{}", header.display());
        }
    }
}
