//! `contigo-pci`: a model as a PCI function of an emulated machine.

use contigo_rtl::pci::{MODELS, PciError, Report, Row, row};
use std::env;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{ExitCode, exit};

const USAGE: &str = "\
Usage: contigo-pci --model NAME (--socket PATH | --missing)

Serves a model to QEMU as a PCI function, until QEMU has gone:

  qemu-system-… -object memory-backend-memfd,id=m,size=512M,share=on -machine …,memory-backend=m
    -device '{\"driver\":\"vfio-user-pci\",\"socket\":{\"path\":\"PATH\",\"type\":\"unix\"}}'

QEMU 11.1 has vfio-user-pci. The socket is there when QEMU can be started. At its end it says what
was done, and each rule of its bus that the model broke.

NAME:MISTAKE+MISTAKE… makes mistakes that a test must notice: bus-master reaches memory without it,
reset goes on after one, unmap reaches memory that was taken away, bytes writes wrong ones.

--missing prints what the model lacks on this machine, and nothing where it is complete.

Exit status: 0 QEMU has gone, 1 failure or a broken rule, 2 wrong usage.

Models:
";

/// The command line.
enum Asked {
    Serve(Row, PathBuf),
    Missing(Row),
    Help,
}

fn main() -> ExitCode {
    match asked(env::args().skip(1)) {
        Ok(Asked::Help) => print(&usage()),
        Ok(Asked::Missing(row)) => {
            print(&row.missing().map_or_else(String::new, |why| format!("{why}\n")))
        }
        Ok(Asked::Serve(row, socket)) => match row.serve(&socket, end) {
            Ok(Report { counts, findings }) => {
                findings
                    .iter()
                    .for_each(|finding| say(&format!("{} broke a rule: {finding}", row.name)));
                say(&format!("{}: {counts:?}", row.name));
                if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

fn print(text: &str) -> ExitCode {
    // A reader that has gone is no failure.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
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
    let (mut model, mut socket, mut missing) = (None, None, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--model" => model = Some(row(&value()?).map_err(|error| error.to_string())?),
            "--socket" => socket = Some(PathBuf::from(value()?)),
            "--missing" => missing = true,
            "--help" | "-h" => return Ok(Asked::Help),
            other => return Err(format!("{other} is no option")),
        }
    }
    match (model, socket) {
        (Some(model), None) if missing => Ok(Asked::Missing(model)),
        (Some(model), Some(socket)) => Ok(Asked::Serve(model, socket)),
        (None, _) => Err("which model? --model NAME".into()),
        (_, None) => Err("on which socket? --socket PATH".into()),
    }
}
