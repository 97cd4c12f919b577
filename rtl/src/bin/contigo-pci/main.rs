//! `contigo-pci`: a model as a PCI function of an emulated machine.

use contigo_rtl::pci::{MODELS, PciError, Row, row, serve};
use std::{
    env,
    fmt::Write as _,
    io::{self, Write as _},
    path::PathBuf,
    process::{ExitCode, exit},
};

const USAGE: &str = "\
Usage: contigo-pci --model NAME --socket PATH

Serves a model to QEMU as a PCI function, until QEMU has gone:

  qemu-system-… -object memory-backend-memfd,id=m,size=512M,share=on -machine …,memory-backend=m
    -device '{\"driver\":\"vfio-user-pci\",\"socket\":{\"path\":\"PATH\",\"type\":\"unix\"}}'

QEMU 11.1 has vfio-user-pci. The socket is there when QEMU can be started.

Exit status: 0 QEMU has gone, 1 failure, 2 wrong usage.

Models:
";

/// The command line.
enum Asked {
    Serve(&'static Row, PathBuf),
    Help,
}

fn main() -> ExitCode {
    match asked(env::args().skip(1)) {
        Ok(Asked::Help) => {
            // A reader that has gone is no failure.
            let _ = io::stdout().write_all(usage().as_bytes());
            ExitCode::SUCCESS
        }
        Ok(Asked::Serve(row, socket)) => match serve((row.make)(), &row.description, &socket, end) {
            Ok(served) => {
                say(&format!("{}: {:?}", row.name, served.counts));
                ExitCode::SUCCESS
            }
            Err(error) => end(&error),
        },
        Err(wrong) => {
            say(&format!("{wrong}\n\n{}", usage()));
            ExitCode::from(2)
        }
    }
}

/// Ends the program. QEMU, which uses the function, ends too.
fn end(error: &PciError) -> ! {
    say(&error.to_string());
    exit(1)
}

fn say(text: &str) {
    // Where even standard error is closed, the exit status has to do.
    let _ = writeln!(io::stderr(), "contigo-pci: {}", text.trim_end());
}

fn usage() -> String {
    MODELS.iter().fold(USAGE.to_owned(), |mut text, row| {
        let _ = writeln!(text, "  {:<12} {}", row.name, row.about);
        text
    })
}

fn asked(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let (mut model, mut socket) = (None, None);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--model" => {
                let name = value()?;
                model = Some(row(&name).ok_or_else(|| format!("there is no model {name}"))?);
            }
            "--socket" => socket = Some(PathBuf::from(value()?)),
            "--help" | "-h" => return Ok(Asked::Help),
            other => return Err(format!("{other} is no option")),
        }
    }
    match (model, socket) {
        (Some(model), Some(socket)) => Ok(Asked::Serve(model, socket)),
        (None, _) => Err("which model? --model NAME".into()),
        (_, None) => Err("on which socket? --socket PATH".into()),
    }
}
