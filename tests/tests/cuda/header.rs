//! NVIDIA's `cuda.h`, compiled, says the same as three tables: the runtime's
//! (`runtime/core/src/cuda/abi.rs`), the stand-in's, and that of the tests on a GPU. Every name,
//! every parameter and every number is compared. `tests/cuda/get` puts the headers into the cache.

mod source;

use self::source::{Constant, aliases, constants, documented, table};
use contigo::cuda::code_name;
use contigo_testkit::{emulated, nvidia};
use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const ABI: &str = include_str!("../../../runtime/core/src/cuda/abi.rs");
const STAND_IN: [&str; 5] = [
    concat!(
        include_str!("../../../gpu/fake-cuda/src/exports/mod.rs"),
        include_str!("../../../gpu/fake-cuda/src/lib.rs")
    ),
    include_str!("../../../gpu/fake-cuda/src/exports/context.rs"),
    include_str!("../../../gpu/fake-cuda/src/exports/device.rs"),
    concat!(
        include_str!("../../../gpu/fake-cuda/src/exports/memory.rs"),
        include_str!("../../../gpu/fake-cuda/src/exports/stream.rs")
    ),
    include_str!("../../../gpu/fake-cuda/src/exports/module.rs"),
];
/// Those that `tests/cuda/get` gets.
const VERSIONS: [&str; 3] = ["11.8", "12.9", "13.5"];
const ON_A_GPU: &str = include_str!("../gpu/libcuda.rs");

/// The types of `abi.rs`, as `cuda.h` calls them.
const TYPES: [(&str, &str); 18] = [
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
    ("Code", "CUresult"),
];

/// A Rust type in C.
fn in_c(rust: &str) -> String {
    if let Some(to) = rust.strip_prefix("*mut ") {
        return format!("{} *", in_c(to));
    }
    if let Some(to) = rust.strip_prefix("*const ") {
        return format!("{} const *", in_c(to));
    }
    TYPES
        .iter()
        .find(|(name, _)| *name == rust)
        .unwrap_or_else(|| panic!("{rust} has no name in C"))
        .1
        .to_owned()
}

/// The names in `cuda.h` of a number of ours.
fn numbers(constant: &Constant<'_>) -> Vec<String> {
    let names: &[&str] = match (constant.module, constant.name) {
        ("attribute", "END") => &["CU_DEVICE_ATTRIBUTE_MAX"],
        ("attribute", name) => return vec![format!("CU_DEVICE_ATTRIBUTE_{name}")],
        ("pointer", "HOST") => &["CU_MEMORYTYPE_HOST"],
        ("pointer", name) => return vec![format!("CU_POINTER_ATTRIBUTE_{name}")],
        (_, "PORTABLE") => &["CU_MEMHOSTALLOC_PORTABLE", "CU_MEMHOSTREGISTER_PORTABLE"],
        (_, "DEVICE_MAP") => &["CU_MEMHOSTALLOC_DEVICEMAP", "CU_MEMHOSTREGISTER_DEVICEMAP"],
        (_, "WRITE_COMBINED") => &["CU_MEMHOSTALLOC_WRITECOMBINED"],
        (_, "ALLOC_FLAGS") => &[
            "(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)",
        ],
        (_, "REGISTER_UNSUPPORTED") => {
            &["(CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)"]
        }
        (_, "NON_BLOCKING") => &["CU_STREAM_NON_BLOCKING"],
        (_, "DISABLE_TIMING") => &["CU_EVENT_DISABLE_TIMING"],
        (_, "EVENT_FLAGS") => {
            &["(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)"]
        }
        (_, "FLAGS") => &["CU_CTX_FLAGS_MASK"],
        (_, "SCHED_MASK") => &["CU_CTX_SCHED_MASK"],
        (_, "JIT_OPTIONS") => &["CU_JIT_NUM_OPTIONS"],
        ("code", "SUCCESS") => &["CUDA_SUCCESS"],
        ("code", name) | (_, name @ ("NOT_READY" | "INVALID_CONTEXT")) => {
            return vec![format!("CUDA_ERROR_{name}")];
        }
        (_, name) if ["JIT_", "STREAM_", "EVENT_"].iter().any(|kind| name.starts_with(kind)) => {
            return vec![format!("CU_{name}")];
        }
        _ => &[],
    };
    names.iter().map(|&name| name.to_owned()).collect()
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
            for version in VERSIONS.into_iter().filter(|version| of_cuda(version, &found).is_none())
            {
                emulated::skipped(
                    &format!("cuda header::{test}, CUDA {version}"),
                    nvidia::NOT_HERE,
                );
            }
            return found;
        }
    };
    emulated::skipped(&format!("cuda header::{test}"), &why);
    Vec::new()
}

/// One of the headers.
fn of_cuda<'h>(version: &str, headers: &'h [PathBuf]) -> Option<&'h PathBuf> {
    headers.iter().find(|header| {
        header.parent().and_then(Path::file_name).unwrap().to_string_lossy().starts_with(version)
    })
}

/// Compiles assertions of C with the header.
fn compile(header: &Path, before: &str, asserts: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("check.c");
    let same = "#define SAME(f, ...) _Static_assert(__builtin_types_compatible_p(__typeof__(f), CUresult (__VA_ARGS__)), #f)\n";
    fs::write(&file, format!("{before}\n#include \"{}\"\n{same}{asserts}", header.display()))
        .unwrap();
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        header.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Turns off the macros that rename functions, and declares the old ones too.
const NO_MACROS: &str = "#define __CUDA_API_VERSION_INTERNAL";

#[test]
fn the_runtime_s_table_is_the_header_s() {
    for header in headers("the_runtime_s_table_is_the_header_s") {
        let (mut as_declared, mut as_chosen) =
            (String::new(), "#define TEXT(x) #x\n#define CHOSEN(x) TEXT(x)\n".to_owned());
        for (name, rust) in aliases(ABI) {
            let (c, size) = (in_c(name), if rust == "c_int" { 4 } else { 8 });
            writeln!(as_declared, "_Static_assert(sizeof({c}) == {size}, \"{name}\");").unwrap();
            if rust.starts_with('*') {
                writeln!(
                    as_declared,
                    "void *pointer_{name}({c} x);\nvoid *pointer_{name}({c} x) {{ return x; }}"
                )
                .unwrap();
            }
        }
        let table = table(ABI);
        assert_eq!(table.len(), 33, "the runtime's functions, each in the one table that is read");
        for function in table {
            let params: Vec<_> = function.params.iter().map(|rust| in_c(rust)).collect();
            for name in &function.names {
                writeln!(as_declared, "SAME({name}, {});", params.join(", ")).unwrap();
            }
            let newest = &function.names[0];
            let base = newest
                .trim_end_matches(|letter: char| letter.is_ascii_digit())
                .strip_suffix("_v")
                .unwrap_or(newest);
            writeln!(
                as_chosen,
                "_Static_assert(__builtin_strcmp(CHOSEN({base}), \"{newest}\") == 0, \"{newest}\");"
            )
            .unwrap();
        }
        for constant in constants(ABI) {
            let names = numbers(&constant);
            assert!(!names.is_empty(), "{constant:?} has no name in C");
            for name in names {
                writeln!(as_declared, "_Static_assert({name} == {}, \"{name}\");", constant.value)
                    .unwrap();
            }
        }
        compile(&header, NO_MACROS, &as_declared);
        compile(&header, "", &as_chosen);
    }
}

/// `CUresult`, as the preprocessor leaves it.
fn results(header: &Path) -> BTreeMap<i32, String> {
    let output = Command::new("cc").args(["-E", "-P"]).arg(header).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, rest) = text.split_once("typedef enum cudaError_enum {").unwrap();
    let (body, _) = rest.split_once("} CUresult;").unwrap();
    let entry = |entry: &str| {
        entry
            .split_once('=')
            .map(|(name, value)| (value.trim().parse().unwrap(), name.trim().to_owned()))
    };
    body.split(',')
        .filter(|entry| !entry.trim().is_empty())
        .map(|text| entry(text).unwrap())
        .collect()
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

/// The stand-in is CUDA 12's, and what the tests on a GPU call is the same in every one. Their
/// types are our own: width and number are compared.
#[test]
fn cuda_declarations_match_the_header() {
    let headers = headers("cuda_declarations_match_the_header");
    let Some(header) = of_cuda("12.9", &headers) else { return };
    let (mut asserts, mut exported) = (String::new(), Vec::new());
    for (index, text) in STAND_IN.into_iter().chain([ON_A_GPU]).enumerate() {
        for function in documented(text) {
            let name = function.name;
            let declared = if function.declared.is_empty() {
                "void".into()
            } else {
                function.declared.join(", ")
            };
            writeln!(asserts, "SAME({name}, {declared});").unwrap();
            assert_eq!(function.declared.len(), function.rust.len(), "{function:?}");
            for (declared, rust) in function.declared.iter().zip(&function.rust) {
                let c = declared
                    .trim_end_matches(|letter: char| letter.is_alphanumeric() || letter == '_');
                writeln!(
                    asserts,
                    "_Static_assert(sizeof({c}) == {}, \"{name}: {declared}\");",
                    width_bytes(rust)
                )
                .unwrap();
            }
            exported.extend((index < STAND_IN.len()).then_some(name));
        }
    }
    for text in STAND_IN {
        for constant in constants(text) {
            numbers(&constant).iter().for_each(|name| {
                writeln!(asserts, "_Static_assert({name} == {}, \"{name}\");", constant.value)
                    .unwrap()
            });
        }
    }
    compile(header, NO_MACROS, &asserts);
    let mut all: Vec<_> = fake_cuda::Function::ALL.iter().map(|function| function.name()).collect();
    all.sort_unstable();
    exported.sort_unstable();
    assert_eq!(exported, all, "each is declared in its comment");
    let declared = documented(ON_A_GPU).len();
    assert_eq!(declared, ON_A_GPU.matches("    fn cu").count(), "each is declared in its comment");
}

/// How many bytes a parameter of the stand-in's, or of a function type, has.
fn width_bytes(rust: &str) -> usize {
    match rust.rsplit_once(": ").map_or(rust, |(_, rust)| rust) {
        "u8" => 1,
        "u32" | "c_int" | "c_uint" | "Code" => 4,
        rust if rust.starts_with('*')
            || rust.starts_with("Out<")
            || ["Handle", "usize", "u64"].contains(&rust) =>
        {
            8
        }
        rust => panic!("how wide is {rust}?"),
    }
}
