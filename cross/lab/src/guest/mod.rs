//! The content of a guest: programs, modules, scripts, packed into an initramfs without root.

mod initramfs;
mod modules;
mod programs;

use crate::board::Board;
use contigo_cross::failure::Result;
use std::path::Path;

pub(crate) use initramfs::with;
pub(crate) use modules::{Module, modules};
pub(crate) use programs::{Program, Programs, Wanted, busybox, executables};

use initramfs::Initramfs;

/// The guest's first process, and what it goes on with.
const INIT: &str = include_str!("../../guest/init.sh");
const TEST: &str = include_str!("../../guest/test.sh");
const SOAK: &str = include_str!("../../guest/soak.sh");
const SHELL: &str = include_str!("../../guest/shell.sh");
/// Root, and the ordinary user of the tests.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n";
const GROUP: &str = "root:x:0:\nuser:x:1000:\n";

#[derive(Clone, Copy, Debug)]
pub(crate) enum Task<'a> {
    /// The board tests with these arguments, then the tree `with` in a root of its own, then the
    /// demo.
    Test {
        arguments: &'a [String],
        with: Option<&'a Path>,
        demo: bool,
    },
    /// Random work by the board tests, with these arguments.
    Soak {
        arguments: &'a [String],
    },
    Shell,
}

pub(crate) fn pack(
    board: &Board,
    programs: &[Program],
    modules: &[Module],
    task: Task<'_>,
    file: &Path,
) -> Result<()> {
    let mut image = Initramfs::create(file)?;
    for folder in ["bin", "dev", "etc", "lab", "lib/modules", "proc", "root", "sys", "tmp"] {
        image.folder(folder)?;
    }
    image.program("init", INIT.as_bytes())?;
    image.file("etc/passwd", PASSWD.as_bytes())?;
    image.file("etc/group", GROUP.as_bytes())?;
    image.file("etc/contigo-board", format!("{}\n", board.name).as_bytes())?;
    for program in programs {
        image.program(&format!("bin/{}", program.name), &program.bytes)?;
    }
    let mut list = String::new();
    for (number, module) in modules.iter().enumerate() {
        let place = format!("lib/modules/{number:02}-{}.ko", module.name);
        image.file(&place, &module.bytes)?;
        let parameters = board.about.module_parameters.get(&module.name).map_or("", String::as_str);
        list += &format!("/{place} {} {parameters}\n", module.name);
    }
    image.file("lab/modules", list.as_bytes())?;
    let extra = modules.iter().filter(|module| module.extra);
    let extra: String = extra.map(|module| format!("{}\n", module.name)).collect();
    image.file("etc/contigo-modules", extra.as_bytes())?;
    if let Some(setup) = board.file(&board.about.setup) {
        image.copy("lab/setup.sh", &setup)?;
    }
    if let Some(then) = board.about.then.as_ref().and_then(|then| board.file(then)) {
        image.copy("lab/then.sh", &then)?;
    }
    let (main, arguments): (_, &[String]) = match task {
        Task::Test { arguments, with, demo } => {
            if let Some(from) = with {
                initramfs::pack_tree(&mut image, initramfs::PLACE, from)?;
            }
            if demo {
                image.file("lab/demo", &[])?;
            }
            (TEST, arguments)
        }
        Task::Soak { arguments } => (SOAK, arguments),
        Task::Shell => (SHELL, &[]),
    };
    image.file("lab/main.sh", main.as_bytes())?;
    let arguments: String = arguments.iter().map(|argument| format!("{argument}\n")).collect();
    image.file("lab/arguments", arguments.as_bytes())?;
    image.finish()
}
