//! A copy of a machine is a copy: no command with `--machine` writes, opens a file outside or a
//! special one, or takes long, whatever the copy contains. The commands are those whose
//! own help has that option.

use super::{Outcome, overlay::ZYNQ, pages::machines};
use contigo_testkit::emulated;
use nix::{
    errno::Errno,
    sys::{
        inotify::{AddWatchFlags, InitFlags, Inotify},
        stat::{Mode, SFlag, makedev, mknod},
    },
    unistd::mkfifo,
};
use std::{
    error::Error,
    fs::{self, File},
    os::unix::fs::{FileExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// A run takes milliseconds, and on a busy machine a second.
const RUN_MAX: Duration = Duration::from_secs(30);
/// More than a run could read in that time, and than this machine has room for.
const HUGE_BYTES: u64 = 1 << 42;
/// Values of options, by the names that the help has for them.
const VALUES: [(&str, &str); 3] =
    [("FILE", ZYNQ), ("MONITOR", "ina260@7:0x40"), ("CLOCK=HZ", "fclk0=100000000")];
/// The uses of a file outside, of a pipe and of a device: there are none.
const TOUCHED: AddWatchFlags = AddWatchFlags::IN_OPEN
    .union(AddWatchFlags::IN_ACCESS)
    .union(AddWatchFlags::IN_MODIFY)
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVE);
/// The same of the copy itself, except for reading.
const WRITTEN: AddWatchFlags = AddWatchFlags::IN_MODIFY
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVE);

type Answer<T> = Result<T, Box<dyn Error>>;

/// One end of the tool.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    status: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    /// Wrong usage, by clap's word.
    fn is_usage(&self) -> bool {
        self.status == Some(2) && self.err.starts_with("error: ")
    }
}

/// The tool with these words, in `folder`; an error where it does not end in time, or dies.
fn run(folder: &Path, words: &[String]) -> Answer<Said> {
    let [out, err] = ["out", "err"].map(|name| folder.join(name));
    let mut command = emulated::command(env!("CARGO_BIN_EXE_contigo"));
    command.args(words).current_dir(folder).env_remove("COLUMNS").stdin(Stdio::null());
    let mut child = command.stdout(File::create(&out)?).stderr(File::create(&err)?).spawn()?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > RUN_MAX {
            child.kill()?;
            child.wait()?;
            return Err(format!("{words:?} has no end").into());
        }
        sleep(Duration::from_millis(2));
    };
    let text =
        |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let said = Said { status: status.code(), out: text(&out)?, err: text(&err)? };
    if status.code().is_none() {
        Err(format!("{words:?} died: {status}, {said:?}").into())
    } else {
        Ok(said)
    }
}

/// A command that takes `--machine`, and its other options, each with a value where it has one.
#[derive(Debug)]
struct Takes {
    command: Vec<String>,
    options: Vec<Vec<String>>,
}

/// Each of them, by the help of the tool, of its commands, and of theirs.
fn all(folder: &Path) -> Answer<Vec<Takes>> {
    let (mut found, mut todo) = (Vec::new(), vec![Vec::<String>::new()]);
    while let Some(command) = todo.pop() {
        let help = run(folder, &[command.clone(), vec!["--help".to_owned()]].concat())?.out;
        let mut section = "";
        let mut options = Vec::new();
        for line in help.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            match (line.starts_with(' '), words.as_slice()) {
                (false, [head]) if head.ends_with(':') => section = head,
                (true, [name, ..])
                    if section == "Commands:"
                        && line.starts_with("  ")
                        && !line.starts_with("   ")
                        && *name != "help" =>
                {
                    todo.push([command.clone(), vec![(*name).to_owned()]].concat());
                }
                (true, [.., "--help" | "--version"]) => {}
                (true, [name, value @ ..])
                    if section == "Options:" && name.starts_with("--") && value.len() < 2 =>
                {
                    options.push((
                        (*name).to_owned(),
                        value.first().map(|value| value.trim_matches(['<', '>']).to_owned()),
                    ));
                }
                _ => {}
            }
        }
        let others = options.iter().filter(|(name, _)| name != "--machine");
        if others.clone().count() == options.len() {
            continue;
        }
        let with_value = |(name, value): &(String, Option<String>)| -> Answer<Vec<String>> {
            let Some(value) = value else { return Ok(vec![name.clone()]) };
            let known =
                VALUES.iter().find(|(name, _)| name == value).map(|(_, known)| (*known).to_owned());
            Ok(vec![
                name.clone(),
                known.ok_or_else(|| {
                    format!("{command:?} {name}: write a value for {value} into VALUES")
                })?,
            ])
        };
        let options = others.map(with_value).collect::<Answer<_>>()?;
        found.push(Takes { command, options });
    }
    Ok(found)
}

impl Takes {
    fn with(&self, options: &[Vec<String>]) -> Vec<String> {
        [&self.command[..], &["--machine".to_owned(), "copy".to_owned()], &options.concat()]
            .concat()
    }

    /// With as many of its options as go together.
    fn most(&self, folder: &Path) -> Answer<Vec<String>> {
        let mut taken: Vec<Vec<String>> = Vec::new();
        // Some want others that come after them.
        for option in self.options.iter().chain(&self.options) {
            let more = [&taken[..], std::slice::from_ref(option)].concat();
            if !taken.contains(option) && !run(folder, &self.with(&more))?.is_usage() {
                taken = more;
            }
        }
        Ok(self.with(&taken))
    }
}

/// A folder with a copy of a board in it, and with room outside.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(board: fn(&Path) -> machines::Root) -> Answer<Self> {
        // Other programs look around in /tmp, and each look is an event.
        let world = Self { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))? };
        let root = board(&world.copy());
        for (file, text) in [
            ("sys/class/hwmon/hwmon0/name", "ina260\n"),
            ("sys/class/hwmon/hwmon0/power1_input", "3750000\n"),
            ("sys/class/hwmon/hwmon1/name", "ina3221\n"),
            ("sys/class/hwmon/hwmon1/in1_input", "19000\n"),
            ("sys/class/hwmon/hwmon1/curr1_input", "210\n"),
            (
                "sys/kernel/debug/clk/clk_summary",
                "protect hardware\n---\n fclk0 1 1 0 99999999 0 0 50000 Y\n",
            ),
            ("sys/class/fpga_manager/fpga0/name", "Xilinx Zynq FPGA Manager\n"),
            ("sys/class/contigo/40000000.copy/x", ""),
            ("sys/kernel/config/device-tree/overlays/x", ""),
            ("proc/77/comm", "camera\n"),
            ("proc/77/maps", ""),
            ("dev/i2c-7", ""),
            ("dev/gpiochip0", ""),
        ] {
            root.put(file, text);
        }
        let memory = File::create(world.copy().join("dev/mem"))?;
        memory.set_len(1 << 32)?;
        memory.write_all_at(&7_u32.to_ne_bytes(), 0xf800_0900)?;
        fs::create_dir_all(world.copy().join("proc/77/fd"))?;
        symlink("/dev/uio0", world.copy().join("proc/77/fd/3"))?;
        fs::create_dir_all(world.copy().join("sys/class/fpga_region/region0"))?;
        symlink(
            "../../../firmware/devicetree/base/amba",
            world.copy().join("sys/class/fpga_region/region0/of_node"),
        )?;
        fs::create_dir(world.outside())?;
        Ok(world)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn copy(&self) -> PathBuf {
        self.path().join("copy")
    }

    fn outside(&self) -> PathBuf {
        self.path().join("outside")
    }

    /// All commands, with nothing and with all of their options.
    fn runs(&self) -> Answer<Vec<Vec<String>>> {
        let mut runs = Vec::new();
        for takes in all(self.path())? {
            runs.extend([takes.with(&[]), takes.most(self.path())?]);
        }
        Ok(runs)
    }
}

/// The files and the folders below a folder, without links.
fn below(folder: &Path) -> Answer<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut folders, mut todo) = (Vec::new(), Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            if kind.is_dir() {
                folders.push(path.clone());
                todo.push(path);
            } else if !kind.is_symlink() {
                files.push(path);
            }
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

/// The uses of files from now on.
struct Watch(Inotify);

impl Watch {
    /// To all below `place`, and to itself.
    fn on(place: &Path, what: AddWatchFlags) -> Answer<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let (files, folders) =
            if place.is_dir() { below(place)? } else { (Vec::new(), Vec::new()) };
        for path in files.iter().chain(&folders).chain([&place.to_owned()]) {
            inotify.add_watch(path, what)?;
        }
        Ok(Self(inotify))
    }

    fn events(&self) -> Answer<Vec<String>> {
        match self.0.read_events() {
            Err(Errno::EAGAIN) => Ok(Vec::new()),
            events => Ok(events?
                .iter()
                .map(|event| format!("{:?} {:?}", event.mask, event.name))
                .collect()),
        }
    }
}

/// A thing in the place of a file of the copy.
#[derive(Clone, Copy, Debug)]
enum Plant {
    /// A link out of the copy, where the file is now.
    LinkOut,
    /// A pipe without a writer.
    Pipe,
    /// A device, where this user may make one: reading it never ends.
    Device,
    /// A file of 4 TiB.
    Huge,
    /// A link to itself.
    Itself,
    /// A link to the copy's root, as the copy calls it.
    Root,
    /// A link to the file elsewhere in the copy, as the copy calls it.
    Absolute,
}

impl Plant {
    /// Puts it in the place of `path`, which goes to `to`. False: this user may not.
    fn plant(self, path: &Path, to: &Path) -> Answer<bool> {
        fs::rename(path, to)?;
        match self {
            Self::LinkOut => symlink(to, path)?,
            Self::Pipe => mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?,
            Self::Device => {
                match mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, makedev(1, 5)) {
                    Err(Errno::EPERM) => {
                        fs::rename(to, path)?;
                        return Ok(false);
                    }
                    made => made?,
                }
            }
            Self::Huge => File::create(path)?.set_len(HUGE_BYTES)?,
            Self::Itself => symlink(path.file_name().ok_or("no name")?, path)?,
            Self::Root => symlink("/", path)?,
            Self::Absolute => symlink(
                Path::new("/").join("elsewhere").join(to.file_name().ok_or("no name")?),
                path,
            )?,
        }
        Ok(true)
    }

    /// Where no run may open anything.
    fn watch(self, path: &Path, to: &Path) -> Answer<Option<Watch>> {
        match self {
            Self::LinkOut => Watch::on(to, TOUCHED).map(Some),
            Self::Pipe | Self::Device => Watch::on(path, TOUCHED).map(Some),
            Self::Huge | Self::Itself | Self::Root | Self::Absolute => Ok(None),
        }
    }
}

#[test]
fn machine_commands_are_known_by_help() -> Outcome {
    let folder = tempfile::tempdir()?;
    let all = all(folder.path())?;
    let names: Vec<_> = all.iter().map(|takes| takes.command.join(" ")).collect();
    for known in ["doctor", "board", "board prepare", "power", "clocks"] {
        assert!(names.iter().any(|name| name == known), "{known}: {names:?}");
    }
    Ok(())
}

#[test]
fn no_command_writes_to_a_copy() -> Outcome {
    let world = World::new(machines::pynq)?;
    // Copied by another program: a child of another test can have this one's files open for
    // writing until it calls exec, and their end would be an event.
    let (copy, made) = (world.copy(), world.copy().with_extension("made"));
    fs::rename(&copy, &made)?;
    assert!(Command::new("cp").arg("-a").args([&made, &copy]).status()?.success());
    let watch = Watch::on(&copy, WRITTEN)?;
    for takes in all(world.path())? {
        let most = takes.most(world.path())?;
        assert!(most.len() > takes.command.len() + 2, "no option goes with --machine: {takes:?}");
        run(world.path(), &most)?;
        for option in &takes.options {
            run(world.path(), &takes.with(std::slice::from_ref(option)))?;
        }
    }
    assert_eq!(watch.events()?, [""; 0]);
    Ok(())
}

/// Each file and each folder in turn, so that the rest leads the tool there.
#[test]
fn no_link_leads_out_no_pipe_is_opened() -> Outcome {
    if emulated::finds_no_more("paths are the kernel's") {
        return Ok(());
    }
    let world = World::new(machines::pynq)?;
    let runs = world.runs()?;
    let (files, folders) = below(&world.copy())?;
    let plants = files.iter().flat_map(|file| [(Plant::LinkOut, file), (Plant::Pipe, file)]);
    let mut wrong = Vec::new();
    for (plant, path) in plants.chain(folders.iter().map(|folder| (Plant::LinkOut, folder))) {
        let once = || -> Answer<Vec<String>> {
            let to = world.outside().join("there");
            plant.plant(path, &to)?;
            let watch = plant.watch(path, &to)?;
            // With all options: they do more than without.
            let ran =
                runs.iter().skip(1).step_by(2).filter_map(|words| run(world.path(), words).err());
            let mut wrong: Vec<_> = ran.map(|error| error.to_string()).collect();
            wrong.extend(watch.map_or_else(|| Ok(Vec::new()), |watch| watch.events())?);
            fs::remove_file(path)?;
            fs::rename(&to, path)?;
            Ok(wrong)
        };
        // Another program may have looked into the folder, or the kernel was out of memory: only
        // a fault of the tool's comes twice.
        if !once()?.is_empty() {
            wrong.extend(
                once()?
                    .into_iter()
                    .map(|event| format!("{plant:?} at {}: {event}", path.display())),
            );
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// All files at once, of each board.
#[test]
fn hostile_copy_is_read_in_time() -> Outcome {
    let runs = World::new(machines::pynq)?.runs()?;
    for board in [machines::pynq, machines::de10, machines::kv260, machines::pc, machines::orin] {
        for plant in
            [Plant::LinkOut, Plant::Pipe, Plant::Device, Plant::Huge, Plant::Itself, Plant::Root]
        {
            let world = World::new(board)?;
            let mut watches = Vec::new();
            for (number, path) in below(&world.copy())?.0.into_iter().enumerate() {
                let to = world.outside().join(number.to_string());
                if plant.plant(&path, &to)? {
                    watches.extend(plant.watch(&path, &to)?);
                }
            }
            for words in &runs {
                run(world.path(), words).map_err(|error| format!("{plant:?}: {error}"))?;
            }
            for watch in watches {
                assert_eq!(watch.events()?, [""; 0], "{plant:?}");
            }
        }
    }
    Ok(())
}

/// A link that the copied machine follows is followed in the copy: every answer is as without.
#[test]
fn an_absolute_link_is_the_copys_own() -> Outcome {
    for board in [machines::pynq, machines::kv260] {
        let world = World::new(board)?;
        let runs = world.runs()?;
        let before: Vec<_> =
            runs.iter().map(|words| run(world.path(), words)).collect::<Answer<_>>()?;
        assert!(before.iter().any(|said| said.status == Some(0)), "{before:?}");
        let elsewhere = world.copy().join("elsewhere");
        let (files, _) = below(&world.copy())?;
        fs::create_dir(&elsewhere)?;
        for (number, path) in files.into_iter().enumerate() {
            Plant::Absolute.plant(&path, &elsewhere.join(number.to_string()))?;
        }
        for (words, before) in runs.iter().zip(before) {
            assert_eq!(run(world.path(), words)?, before, "{words:?}");
        }
    }
    Ok(())
}
