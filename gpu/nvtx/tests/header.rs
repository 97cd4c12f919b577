//! NVIDIA's `nvToolsExt.h`, compiled, says the same as this crate's table (`src/abi.rs`). And the
//! tool (`examples/nvtx_lines.rs`) hears a program that has the real header. `tests/cuda/get` puts
//! the headers into the cache.
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
use std::fmt::Write;
use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

const ABI: &str = include_str!("../src/abi.rs");

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
    contigo_testkit::skipped(&format!("nvtx header::{test}"), &why);
    Vec::new()
}

/// Compiles C with the header in `folder`.
fn compile(folder: &Path, code: &str, options: &[&str]) {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("check.c");
    fs::write(&file, format!("#include <nvtx3/nvToolsExt.h>\n{code}")).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-isystem"]).arg(folder);
    let output = cc.arg(&file).args(options).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", folder.display());
}

/// Every `const NAME: TYPE = NUMBER;` of the table, by its name in C.
fn numbers() -> Vec<(String, usize)> {
    let number = |line: &str| {
        let (name, rest) = line.trim().strip_prefix("pub(crate) const ")?.split_once(": ")?;
        let value = rest.split_once(" = ")?.1.strip_suffix(';')?.parse().ok()?;
        Some((in_c(name), value))
    };
    ABI.lines().filter_map(number).collect()
}

/// The name in C of a number: that of the slot `DOMAIN_MARK_EX` is in camel case.
fn in_c(name: &str) -> String {
    let camels = |word: &str| word[..1].to_owned() + &word[1..].to_lowercase();
    match name {
        "MODULE_CORE2" => "NVTX_CB_MODULE_CORE2".to_owned(),
        slot if slot.starts_with("DOMAIN_") => {
            format!("NVTX_CBID_CORE2_{}", slot.split('_').map(camels).collect::<String>())
        }
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
    let numbers = numbers();
    assert_eq!(numbers.len(), 13, "each number is read: {numbers:?}");
    numbers.iter().for_each(|(name, value)| equal(name, *value));
    for (module, size) in
        ["CORE", "CUDA", "OPENCL", "CUDART", "CORE2", "SYNC"].into_iter().zip(&abi::MODULES[1..])
    {
        equal(&format!("NVTX_CBID_{module}_SIZE"), *size);
    }
    equal("NVTX_CB_MODULE_SIZE", abi::MODULES.len());
    equal("sizeof(NvtxCallbackModule)", 4);
    for (field, offset) in [
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
    ] {
        equal(&format!("__builtin_offsetof(nvtxEventAttributes_t, {field})"), offset);
    }
    equal("sizeof(nvtxEventAttributes_t)", size_of::<abi::EventAttributes>());
    equal("sizeof(NvtxExportTableCallbacks)", size_of::<abi::ExportTableCallbacks>());
    let at = offset_of!(abi::ExportTableCallbacks, get_module_function_table);
    equal("__builtin_offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable)", at);
    equal("sizeof(NvtxExportTableVersionInfo)", size_of::<abi::ExportTableVersionInfo>());
    let at = offset_of!(abi::ExportTableVersionInfo, version);
    equal("__builtin_offsetof(NvtxExportTableVersionInfo, version)", at);
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
        let shown = |line: &tool::Line| {
            format!("{} {} {} {:?}", line.verb, line.domain, line.name, line.payload)
        };
        let what = |verb| format!("{verb} in_C one_range Some(7)");
        let end = |verb| format!("{verb} in_C - None");
        let expected = [what("push"), what("mark"), end("pop"), what("start"), end("end")];
        assert_eq!(lines.iter().map(shown).collect::<Vec<_>>(), expected);
    }
}
