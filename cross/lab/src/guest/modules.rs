//! The modules that a guest loads: the board's, with what they depend on, then those that the user
//! gave in `CONTIGO_MODULES`, then the project's own.

use crate::board::Board;
use crate::cpu;
use crate::kernel::Kernel;
use anyhow::{Context, bail};
use contigo_cross::failure::Result;
use liblzma::read::XzDecoder;
use object::{Architecture, Object, ObjectSection};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folders above each other in a kernel's module tree, with room: none is deeper than eight.
const DEEPEST: usize = 16;

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Given by the user: its name is passed to the tests.
    pub(crate) extra: bool,
}

/// Everything that the board loads, in order; `own` are the project's, which were built for this
/// kernel.
pub(crate) fn modules(board: &Board, kernel: &Kernel, own: Vec<PathBuf>) -> Result<Vec<Module>> {
    let mut extra = extra(board)?;
    // Where the user gives another one of that name, that one is loaded.
    extra.extend(own);
    if board.about.kernel.modules.is_empty() && extra.is_empty() {
        return Ok(Vec::new());
    }
    let mut order =
        Order { board, tree: Tree::read(kernel)?, seen: BTreeSet::new(), list: Vec::new() };
    for name in &board.about.kernel.modules {
        order.add(name)?;
    }
    for path in extra {
        order.add_extra(&path, kernel)?;
    }
    Ok(order.list)
}

/// The files in `CONTIGO_MODULES`, or in its folder of the board's name, by name.
fn extra(board: &Board) -> Result<Vec<PathBuf>> {
    let Some(folder) = env::var_os("CONTIGO_MODULES").filter(|folder| !folder.is_empty()) else {
        return Ok(Vec::new());
    };
    let folder = PathBuf::from(folder);
    let own = folder.join(&board.name);
    let folder = if own.is_dir() { own } else { folder };
    let listed = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let cannot_read = || format!("CONTIGO_MODULES: cannot read {}", folder.display());
    let entries = listed.with_context(cannot_read)?.into_iter();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| module_name(path).is_some()).collect();
    files.sort();
    Ok(files)
}

/// `foo` for `foo.ko` and `foo.ko.xz`.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    file.strip_suffix(".xz").unwrap_or(file).strip_suffix(".ko").map(str::to_owned)
}

/// A module's name as the kernel compares it.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

#[derive(Debug)]
struct Tree {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

impl Tree {
    fn read(kernel: &Kernel) -> Result<Self> {
        let list = kernel.modules.join("modules.builtin");
        let list =
            fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
        let names = list.lines().filter_map(|line| module_name(Path::new(line.trim())));
        let built_in = names.map(|name| plain(&name)).collect();
        let mut files = BTreeMap::new();
        collect(&kernel.modules, DEEPEST, &mut files)
            .with_context(|| format!("cannot read {}", kernel.modules.display()))?;
        Ok(Self { files, built_in })
    }
}

fn collect(
    folder: &Path,
    deeper: usize,
    files: &mut BTreeMap<String, PathBuf>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Not through links: a build tree has one to its source.
        if entry.file_type()?.is_dir() {
            if deeper > 0 {
                collect(&path, deeper - 1, files)?;
            }
        } else if let Some(name) = module_name(&path) {
            files.insert(plain(&name), path);
        }
    }
    Ok(())
}

struct Order<'a> {
    board: &'a Board,
    tree: Tree,
    seen: BTreeSet<String>,
    list: Vec<Module>,
}

impl Order<'_> {
    /// One of the kernel's own modules, after what it depends on. It is marked before its
    /// dependencies are followed, so a circle ends.
    fn add(&mut self, name: &str) -> Result<()> {
        let name = plain(name);
        if self.tree.built_in.contains(&name) || !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(path) = self.tree.files.get(&name).cloned() else {
            let board = &self.board.name;
            bail!("board {board}: its kernel has no module {name}, as a file or built in");
        };
        let module = Ko::read(&path)?;
        for dependency in &module.depends {
            self.add(dependency)?;
        }
        self.list.push(Module { name, bytes: module.bytes, extra: false });
        Ok(())
    }

    /// A module of the user's: refused here with a clear line, which the guest's kernel would not
    /// give.
    fn add_extra(&mut self, path: &Path, kernel: &Kernel) -> Result<()> {
        let module = Ko::read(path)?;
        let (board, cpu, shown) = (&self.board.name, self.board.cpu(), path.display());
        if module.architecture != cpu.elf() {
            let (got, wanted) = (cpu::elf_name(module.architecture), cpu.name());
            bail!("module {shown} is for {got}, board {board} runs {wanted}");
        }
        let (got, wanted) = (&module.release, &kernel.release);
        if got != wanted {
            bail!("module {shown} is for kernel {got}, board {board} runs {wanted}");
        }
        for dependency in &module.depends {
            self.add(dependency)?;
        }
        let name = module_name(path).unwrap_or_default();
        if self.seen.insert(plain(&name)) {
            self.list.push(Module { name, bytes: module.bytes, extra: true });
        }
        Ok(())
    }
}

/// A module's bytes, uncompressed, and its `.modinfo`.
#[derive(Debug)]
struct Ko {
    bytes: Vec<u8>,
    architecture: Architecture,
    /// The kernel that it was built for, `uname -r`: the first word of `vermagic`.
    release: String,
    /// Names of the modules that must be loaded first.
    depends: Vec<String>,
}

impl Ko {
    fn read(path: &Path) -> Result<Self> {
        let raw = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let bytes = if path.extension().is_some_and(|extension| extension == "xz") {
            let mut plain = Vec::new();
            XzDecoder::new(raw.as_slice())
                .read_to_end(&mut plain)
                .with_context(|| format!("cannot unpack {}", path.display()))?;
            plain
        } else {
            raw
        };
        let Ok(file) = object::File::parse(bytes.as_slice()) else {
            bail!("{} is no kernel module: not an ELF file", path.display())
        };
        let info = file.section_by_name(".modinfo").and_then(|section| section.data().ok());
        let none = || format!("{} is no kernel module: it has no .modinfo", path.display());
        let info = info.with_context(none)?;
        let value = |key: &str| field(info, key);
        let release = value("vermagic")
            .and_then(|magic| magic.split_whitespace().next().map(str::to_owned))
            .unwrap_or_default();
        let depends = value("depends").unwrap_or_default();
        let depends =
            depends.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let architecture = file.architecture();
        Ok(Self { bytes, architecture, release, depends })
    }
}

/// One `key=value` of a `.modinfo`, whose entries end with a zero byte.
fn field(info: &[u8], key: &str) -> Option<String> {
    info.split(|byte| *byte == 0).find_map(|entry| {
        let entry = String::from_utf8_lossy(entry);
        entry.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')).map(str::to_owned)
    })
}
