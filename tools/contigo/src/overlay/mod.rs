//! `contigo overlay`: a block design from its `.hwh`, as a table, as JSON, and as an overlay for
//! the device tree.

mod dtso;
mod report;

use crate::failure::Failure;
use crate::output;
use clap::Args;
use contigo::design::{Design, DesignRule, MAX_BYTES};
use contigo::names::Fabric;
use contigo_bringup::file;
use report::{CoreEntry, Report};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Vivado's hardware hand-off of the design: design.hwh. For design.bit, the file beside it
    file: PathBuf,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Write a device-tree overlay's source, with a node for the kernel module contigo for each
    /// core; - prints it in the table's place
    #[arg(long, value_name = "FILE")]
    dtso: Option<PathBuf>,
    /// Only this core, by its name; again for another one
    #[arg(long, value_name = "NAME")]
    core: Vec<String>,
    /// The overlay is applied at boot, with the fabric loaded before: then it has the design's
    /// interrupt controllers too, which the kernel starts at boot only
    #[arg(long)]
    at_boot: bool,
    /// The port snoops for this core, where the file does not tell
    #[arg(long, value_name = "NAME")]
    coherent: Vec<String>,
    /// The port does not snoop for this core, where the file does not tell
    #[arg(long, value_name = "NAME", conflicts_with = "coherent")]
    not_coherent: Vec<String>,
}

/// Reads the hand-off that the user names.
pub(crate) fn source(file: &Path) -> Result<Vec<u8>, Failure> {
    file::read(file, MAX_BYTES as u64)
        .map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

pub(crate) fn overlay(options: &Options) -> Result<(), Failure> {
    let file = match options.file.extension() {
        Some(extension) if extension == "bit" || extension == "bin" => {
            options.file.with_extension("hwh")
        }
        _ => options.file.clone(),
    };
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}", file.display()));
    let source = source(&file)?;
    let design = Design::read(&source).map_err(|error| wrong(&error))?;
    coherency(&design, options).map_err(|error| wrong(&error))?;
    let report =
        Report::of(&design, &options.core, &Fabric::here()).map_err(|error| wrong(&error))?;
    if let Some(path) = &options.dtso {
        let written = dtso::source(&design, &report, options).map_err(|error| wrong(&error))?;
        for note in &written.notes {
            // If even standard error is closed, the file still has the note.
            let _ = writeln!(io::stderr(), "contigo: {note}");
        }
        if path.as_os_str() == "-" {
            if options.json {
                return Err(Failure::Usage(
                    "--dtso - and --json both print: name a file for one of them".into(),
                ));
            }
            return output::text(written.text.trim_end());
        }
        fs::write(path, written.text).map_err(|error| Failure::Write {
            path: path.clone(),
            error,
            option: "--dtso",
        })?;
    }
    output::report(options.json, &report, listed)
}

/// Refuses the user's statement about a port if it contradicts the file. A node with a wrong
/// statement loses data.
fn coherency(design: &Design<'_>, options: &Options) -> Result<(), String> {
    let said =
        [("--coherent", true, &options.coherent), ("--not-coherent", false, &options.not_coherent)];
    for (option, snoops, name) in said
        .into_iter()
        .flat_map(|(option, snoops, names)| names.iter().map(move |name| (option, snoops, name)))
    {
        match design.core(name).and_then(|core| core.port()) {
            Ok(port) if port.coherent != snoops => {
                let words = if port.coherent { "snoops" } else { "does not snoop" };
                return Err(format!(
                    "{option} {name}: the file says that its port {} {words} for it",
                    port.name
                ));
            }
            Err(error) if error.rule == DesignRule::NoPort && snoops => {
                return Err(format!(
                    "{option} {name}: no port snoops for a core that reaches no memory"
                ));
            }
            Err(error)
                if !matches!(
                    error.rule,
                    DesignRule::NoPort | DesignRule::Unsure | DesignRule::MixedPorts
                ) =>
            {
                return Err(error.to_string());
            }
            _ => {}
        }
    }
    Ok(())
}

fn listed(report: &Report<'_>) -> String {
    let mut table = output::table(&["core", "driver", "registers", "interrupt", "memory", "clock"]);
    let lines =
        |lines: Vec<String>| if lines.is_empty() { "-".to_owned() } else { lines.join("\n") };
    for core in &report.cores {
        let windows = core
            .windows
            .iter()
            .map(|window| format!("{} {}", window.address, size(window.bytes)))
            .collect();
        let interrupts = core
            .interrupts
            .iter()
            .map(|interrupt| format!("{} {}", interrupt.pin, interrupt.wired))
            .collect();
        let clocks = core.clocks.iter().map(|clock| format!("{clock}")).collect();
        let registers = match (core.hls, core.outside) {
            (true, _) => "registers (HLS)",
            (_, true) => "registers, outside of the design",
            _ => "registers",
        };
        let driver = core.driver.unwrap_or(registers);
        table.add_row([
            core.name.to_owned(),
            driver.to_owned(),
            lines(windows),
            lines(interrupts),
            lines(memory(core)),
            lines(clocks),
        ]);
    }
    output::keep_names(&mut table, 60);
    let tool = if report.tool.is_empty() { "?" } else { report.tool };
    let title = format!(
        "{}: {} ({}), Vivado {tool}; {} cores",
        report.name,
        report.device,
        report.soc,
        report.cores.len()
    );
    format!("{title}\n{table}\nfabric: {}", report.fabric)
}

/// The ports by which a core reaches memory. Equal ports of several masters share one line.
fn memory(core: &CoreEntry<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for master in &core.masters {
        let line = match &master.port {
            Some(port) => {
                format!("{}, {} bits, {}", port.name, port.data_bits, port.snoops.words())
            }
            None => {
                format!("{} reaches {}", master.interface, master.elsewhere.unwrap_or("nothing"))
            }
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
