//! `contigo map`: a kernel's map from the file of its tool, completed, as JSON, C or Rust.

use crate::failure::Failure;
use crate::output;
use clap::{Args, ValueEnum};
use contigo::Direction;
use contigo::design::MAX_BYTES;
use contigo::design::kernel::{self, KernelMap, MapError, Protocol, Scalar};
use contigo_bringup::file;
use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// What the kernel's tool wrote: Vitis HLS's x<name>_hw.h, Vivado's .hwh, or a map in JSON
    file: PathBuf,
    /// The kernel's instance in a .hwh
    #[arg(long, value_name = "NAME", default_value = "")]
    instance: String,
    /// The kernel only reads these pointers
    #[arg(long, value_name = "POINTER", value_delimiter = ',')]
    reads: Vec<String>,
    /// The kernel only writes these pointers
    #[arg(long, value_name = "POINTER", value_delimiter = ',')]
    writes: Vec<String>,
    /// How many bytes a pointer has, by the kernel's scalars: x=4*n, y=4*n+120, z=4096
    #[arg(long, value_name = "POINTER=RULE", value_delimiter = ',')]
    length: Vec<String>,
    /// These arguments are pointers of 32 bits, which a file does not show
    #[arg(long, value_name = "ARGUMENT", value_delimiter = ',')]
    pointer: Vec<String>,
    /// These arguments are scalars of 64 bits, which a file does not show
    #[arg(long, value_name = "ARGUMENT", value_delimiter = ',')]
    scalar: Vec<String>,
    /// The language of the output
    #[arg(long = "as", value_name = "LANGUAGE", default_value = "json")]
    language: Language,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    /// For Python, C and Rust, which read it as they run
    Json,
    /// A header: the map as a string, and the numbers of operands and argument words
    C,
    /// A constant, which is checked when the program is compiled
    Rust,
}

pub(crate) fn map(options: &Options) -> Result<(), Failure> {
    let wrong = |why: &str| Failure::Usage(format!("{}: {why}", options.file.display()));
    let source =
        file::read(&options.file, MAX_BYTES as u64).map_err(|why| wrong(&why.to_string()))?;
    let map = completed(&source, options).map_err(|why| wrong(&why))?;
    output::text(match options.language {
        Language::Json => format!("{map:#}"),
        Language::C => c(&map).map_err(|why| wrong(&why))?,
        Language::Rust => rust(&map).map_err(|why| wrong(&why))?,
    })
}

fn completed(source: &[u8], options: &Options) -> Result<KernelMap, String> {
    let told = |error: MapError| error.to_string();
    let mut map = kernel::any(source, &options.instance).map_err(told)?;
    for name in &options.pointer {
        map = map.as_pointer(name);
    }
    for name in &options.scalar {
        map = map.as_scalar(name);
    }
    for name in &options.reads {
        map = map.direction(name, Direction::ToDevice);
    }
    for name in &options.writes {
        map = map.direction(name, Direction::FromDevice);
    }
    for rule in &options.length {
        let (name, rule) = rule
            .split_once('=')
            .ok_or_else(|| format!("--length {rule}: it is a pointer and its rule, as x=4*n"))?;
        map = map.length(name, rule);
    }
    map.build().map_err(told)
}

/// The kernel's name in capitals, if C and Rust take it. Names have letters, digits and `_`.
fn constant(map: &KernelMap) -> Result<String, String> {
    let name = map.name.as_str().to_ascii_uppercase();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Ok(name)
    } else {
        Err(format!("`{}`: a constant's name begins with a letter: print it as json", map.name))
    }
}

fn c(map: &KernelMap) -> Result<String, String> {
    let name = constant(map)?;
    let pointers = map.pointers().iter().map(|pointer| pointer.name);
    let mut names: Vec<_> = pointers.chain(map.scalars().iter().map(|each| each.name)).collect();
    names.sort_by_key(|name| name.as_str().to_ascii_uppercase());
    let twice = names.windows(2).find(|pair| match pair {
        [one, other] => one.as_str().eq_ignore_ascii_case(other.as_str()),
        _ => false,
    });
    let taken = names.iter().find(|name| name.as_str().eq_ignore_ascii_case("MAP"));
    if let Some(name) = twice.and_then(|pair| pair.first()).or(taken) {
        let text = "two constants would have its name in capitals: print it as json";
        return Err(format!("`{name}`: {text}"));
    }
    let mut text = format!(
        "/* The kernel {}, for contigo_engine_options.map and contigo_kernel_open. */\n\n\
         static const char {name}_MAP[] =\n",
        map.name
    );
    for line in format!("{map:#}").lines() {
        let _ = writeln!(text, "    \"{}\"", line.replace('"', "\\\""));
    }
    text.truncate(text.trim_end().len());
    text += ";\n";
    let pointers = map.pointers().iter().map(|pointer| pointer.name.as_str());
    numbered(&mut text, "operands of a job", &name, pointers.zip(0..));
    let mut at = 0;
    let words = map.scalars().iter().map(|scalar| {
        let first = at;
        at += scalar.words();
        (scalar.name.as_str(), first)
    });
    numbered(&mut text, "argument words of a job, the low one first", &name, words);
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// An enum of C.
fn numbered<'n>(
    text: &mut String,
    what: &str,
    kernel: &str,
    names: impl Iterator<Item = (&'n str, usize)>,
) {
    let names: Vec<_> = names
        .map(|(name, number)| format!("{kernel}_{} = {number}", name.to_ascii_uppercase()))
        .collect();
    if !names.is_empty() {
        let _ = write!(text, "\n/* The {what}. */\nenum {{ {} }};\n", names.join(", "));
    }
}

fn rust(map: &KernelMap) -> Result<String, String> {
    let name = constant(map)?;
    let protocol = match map.protocol {
        Protocol::Hs => "Hs",
        Protocol::Chain => "Chain",
    };
    let mut text = format!(
        "use contigo::OperandSpec;\n\
         use contigo::design::kernel::{{KernelMap, Protocol}};\n\n\
         pub const {name}: KernelMap = {{\n    \
         let map = KernelMap::named(\"{}\", Protocol::{protocol})\n        \
         .window({:#x})\n        .interrupt({})",
        map.name,
        map.window_bytes(),
        map.interrupt
    );
    for Scalar { name, offset, bits } in map.results() {
        let _ = write!(text, "\n        .result(\"{name}\", {offset:#x}, {bits})");
    }
    // The rules are in the map's own text.
    let told: serde_json::Value = serde_json::from_str(&map.to_string()).unwrap_or_default();
    let rule = |at| told.pointer(&format!("/pointers/{at}/bytes")).and_then(|rule| rule.as_str());
    let rules = (0..).map(|at: usize| rule(at).unwrap_or_default());
    for ((pointer, operand), rule) in map.pointers().iter().zip(map.operands()).zip(rules) {
        let spec = match operand.direction {
            Direction::ToDevice => "OperandSpec::to_device()",
            Direction::FromDevice => "OperandSpec::from_device()",
            Direction::Bidirectional => "OperandSpec::in_out()",
        };
        let mut fields = String::new();
        for (name, value, default) in [
            ("align_bytes", operand.align_bytes, 1),
            ("min_bytes", operand.min_bytes, 1),
            ("max_bytes", operand.max_bytes, usize::MAX),
        ] {
            if value != default {
                let _ = write!(fields, "{name}: {value}, ");
            }
        }
        let spec = match fields.is_empty() {
            true => spec.to_owned(),
            false => format!("OperandSpec {{ {fields}..{spec} }}"),
        };
        let width = if pointer.bits == 32 { "32" } else { "" };
        let _ = write!(
            text,
            "\n        .pointer{width}(\"{}\", {:#x}, {spec}, \"{rule}\")",
            pointer.name, pointer.offset,
        );
    }
    for Scalar { name, offset, bits } in map.scalars() {
        let _ = write!(text, "\n        .scalar(\"{name}\", {offset:#x}, {bits})");
    }
    text += ";\n    match map.build() {\n        Ok(map) => map,\n        \
             Err(_) => panic!(\"the map is wrong\"),\n    }\n};";
    Ok(text)
}
