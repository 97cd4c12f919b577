//! NVIDIA's `nvToolsExt.h`, compiled, says the same as two tables: this crate's (`src/abi.rs`), and
//! the tool's (`examples/nvtx_lines.rs`). And the tool hears a program that has the real header.
//! `tests/cuda/get` puts the headers into the cache.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

#[allow(dead_code, unreachable_pub, reason = "its layouts are compared, and its text")]
#[path = "../src/abi.rs"]
mod abi;
mod tool;

use contigo_testkit::{emulated, nvidia};
use std::{
    fmt::Write,
    fs,
    mem::offset_of,
    path::{Path, PathBuf},
    process::Command,
};

const ABI: &str = include_str!("../src/abi.rs");
const TOOL: &str = include_str!("../examples/nvtx_lines.rs");

/// The headers, or none, with the reason said, where `test` cannot run.
fn headers(test: &str) -> Vec<PathBuf> {
    let found = nvidia::nvtx_headers();
    let why = match emulated::why() {
        Some(why) => format!("the compiler is not for this processor: {why}"),
        None if Command::new("cc").arg("--version").output().is_err() => {
            "there is no C compiler (cc) here".into()
        }
        None if found.is_empty() => nvidia::NOT_HERE.into(),
        None => return found,
    };
    emulated::skipped(&format!("nvtx header::{test}"), &why);
    Vec::new()
}

/// Compiles C with the header in `folder`.
fn compile(folder: &Path, code: &str, options: &[&str]) {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("check.c");
    fs::write(&file, format!("#include <nvtx3/nvToolsExt.h>\n{code}")).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-isystem"])
        .arg(folder)
        .arg(&file)
        .args(options);
    let output = cc.output().unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        folder.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Every `const NAME: TYPE = NUMBER;` of a text.
fn numbers(text: &str) -> Vec<(String, u64)> {
    let constants = text
        .lines()
        .filter_map(|line| line.trim().trim_start_matches("pub(crate) ").strip_prefix("const "));
    let number = |rest: &str| {
        let (name, rest) = rest.split_once(": ")?;
        let value = rest.split_once(" = ")?.1.strip_suffix(';')?.parse().ok()?;
        Some((name.to_owned(), value))
    };
    constants.filter_map(number).collect()
}

/// A slot's name in C, of its name here: `DOMAIN_RANGE_PUSH_EX` is `DomainRangePushEx`.
fn in_camels(name: &str) -> String {
    let word = |word: &str| word[..1].to_owned() + &word[1..].to_lowercase();
    name.split('_').map(word).collect()
}

/// The name in C of a number of either text.
fn in_c(name: &str) -> String {
    if let Some(slot) = name.strip_prefix("NVTX_CBID_CORE2_").filter(|slot| *slot != "SIZE") {
        return format!("NVTX_CBID_CORE2_{}", in_camels(slot));
    }
    match name {
        slot if slot.starts_with("DOMAIN_") => format!("NVTX_CBID_CORE2_{}", in_camels(slot)),
        "MODULE_CORE2" => "NVTX_CB_MODULE_CORE2".to_owned(),
        name if name.starts_with("NVTX_") => name.to_owned(),
        name => format!("NVTX_{name}"),
    }
}

/// A Rust type of `abi.rs` in C.
fn type_in_c(rust: &str) -> &str {
    match rust {
        "Domain" => "nvtxDomainHandle_t",
        "*const EventAttributes" => "const nvtxEventAttributes_t *",
        "*const c_char" => "const char *",
        "RangeId" => "nvtxRangeId_t",
        "c_int" => "int",
        "" => "void",
        other => panic!("{other} has no name in C"),
    }
}

/// The types of the slots' functions, each compared with the header's of that name.
fn functions(asserts: &mut String) -> usize {
    // Each on a line, where the formatter has broken it.
    let text = ABI.replace(" =\n    ", " = ");
    let types = text.lines().filter_map(|line| {
        line.strip_prefix("pub(crate) type Domain")?.split_once(" = unsafe extern \"C\" fn(")
    });
    let mut count = 0;
    for (name, rest) in types {
        let (params, result) = rest.trim_end_matches(';').split_once(')').unwrap();
        let params: Vec<_> = params.split(", ").map(type_in_c).collect();
        let (result, params) = (type_in_c(result.trim_start_matches(" -> ")), params.join(", "));
        let same = format!(
            "__builtin_types_compatible_p(nvtxDomain{name}_impl_fntype, {result} (*)({params}))"
        );
        writeln!(asserts, "_Static_assert({same}, \"{name}\");").unwrap();
        count += 1;
    }
    count
}

#[test]
fn numbers_layouts_functions_match_header() {
    let mut asserts = String::new();
    let mut equal = |c: &str, value: usize| {
        writeln!(asserts, "_Static_assert({c} == {value}, \"{c}\");").unwrap()
    };
    let (own, tools) = (numbers(ABI), numbers(TOOL));
    assert_eq!((own.len(), tools.len()), (13, 12), "each number is read: {own:?} {tools:?}");
    own.iter()
        .chain(&tools)
        .for_each(|(name, value)| equal(&in_c(name), usize::try_from(*value).unwrap()));
    for (module, size) in
        ["CORE", "CUDA", "OPENCL", "CUDART", "CORE2", "SYNC"].into_iter().zip(&abi::MODULES[1..])
    {
        equal(&format!("NVTX_CBID_{module}_SIZE"), *size);
    }
    equal("NVTX_CB_MODULE_SIZE", abi::MODULES.len());
    equal("sizeof(NvtxCallbackModule)", 4);
    let attributes = [
        ("version", offset_of!(abi::EventAttributes, version)),
        ("size", offset_of!(abi::EventAttributes, size)),
        ("category", offset_of!(abi::EventAttributes, category)),
        ("colorType", offset_of!(abi::EventAttributes, color_type)),
        ("color", offset_of!(abi::EventAttributes, color)),
        ("payloadType", offset_of!(abi::EventAttributes, payload_type)),
        ("reserved0", offset_of!(abi::EventAttributes, reserved0)),
        ("payload", offset_of!(abi::EventAttributes, payload)),
        ("messageType", offset_of!(abi::EventAttributes, message_type)),
        ("message", offset_of!(abi::EventAttributes, message)),
    ];
    attributes.iter().for_each(|(field, offset)| {
        equal(&format!("__builtin_offsetof(nvtxEventAttributes_t, {field})"), *offset)
    });
    equal("sizeof(nvtxEventAttributes_t)", size_of::<abi::EventAttributes>());
    equal("sizeof(NvtxExportTableCallbacks)", size_of::<abi::ExportTableCallbacks>());
    let at = offset_of!(abi::ExportTableCallbacks, get_module_function_table);
    equal("__builtin_offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable)", at);
    equal("sizeof(NvtxExportTableVersionInfo)", size_of::<abi::ExportTableVersionInfo>());
    equal(
        "__builtin_offsetof(NvtxExportTableVersionInfo, version)",
        offset_of!(abi::ExportTableVersionInfo, version),
    );
    let at = offset_of!(abi::ExportTableVersionInfo, set_injection_nvtx_version);
    equal("__builtin_offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion)", at);
    assert_eq!(functions(&mut asserts), 6, "{asserts}");
    for folder in headers("numbers_layouts_functions_match_header") {
        compile(&folder, &asserts, &["-fsyntax-only"]);
    }
}

/// A program with the header: what it says is what the tool writes.
const PROGRAM: &str = r#"
int main(void) {
    nvtxDomainHandle_t domain = nvtxDomainCreateA("in C");
    nvtxEventAttributes_t a = { .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE };
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = "one range";
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    a.payload.ullValue = 7;
    nvtxDomainRangePushEx(domain, &a);
    nvtxDomainMarkEx(domain, &a);
    nvtxDomainRangePop(domain);
    nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &a));
    return 0;
}
"#;

#[test]
fn the_tool_hears_a_program_that_has_the_header() {
    for folder in headers("the_tool_hears_a_program_that_has_the_header") {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("program");
        compile(&folder, PROGRAM, &["-o", program.to_str().unwrap(), "-ldl"]);
        let (_, lines) = tool::heard(&mut Command::new(program));
        let heard: Vec<_> = lines
            .iter()
            .map(|line| {
                (line.verb.as_str(), line.domain.as_str(), line.name.as_str(), line.payload)
            })
            .collect();
        let what = |verb| (verb, "in_C", "one_range", Some(7));
        let end = |verb| (verb, "in_C", "-", None);
        assert_eq!(heard, [what("push"), what("mark"), end("pop"), what("start"), end("end")]);
    }
}
