//! A copy of a machine is a copy: no command with `--machine` writes, opens a file outside or a
//! special one, or takes long, whatever the copy contains.

use super::overlay::ZYNQ;
use super::pages::machines::{self, Root};
use super::{Answer, Outcome, Run};
use contigo_testkit::{emulated, rounds};
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A run takes milliseconds, and on a busy machine a second.
const RUN_MAX: Duration = Duration::from_secs(30);
/// More than a run could read in that time, and than this machine has room for.
const HUGE_BYTES: u64 = 1 << 42;
/// The commands that take `--machine`, each alone, then with all options that go with it.
const RUNS: [&[&str]; 10] = [
    &["doctor"],
    &["doctor", "--all", "--json"],
    &["board"],
    &["board", "--registers", "--design", ZYNQ, "--loaded", "--json"],
    &["board", "prepare"],
    &["board", "prepare", "--design", ZYNQ, "--loaded", "--json"],
    &["power"],
    &["power", "--monitor", "ina260@7:0x40", "--json"],
    &["clocks"],
    &["clocks", "--design", ZYNQ, "--all", "--json"],
];
/// Their options that do not go with `--machine`.
const OTHERS: [&str; 4] =
    ["doctor --probe", "doctor --design", "board prepare --yes", "clocks --set"];
/// The uses of a file outside, of a pipe and of a device: there are none.
const TOUCHED: AddWatchFlags = AddWatchFlags::IN_ALL_EVENTS;
/// The same of the copy itself, except for reading.
const WRITTEN: AddWatchFlags = TOUCHED
    .difference(AddWatchFlags::IN_OPEN)
    .difference(AddWatchFlags::IN_ACCESS)
    .difference(AddWatchFlags::IN_CLOSE_NOWRITE);

/// One end of the tool.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    status: Option<i32>,
    out: String,
    err: String,
}

/// The tool with these words, in `folder`; an error where it does not end in time, or dies.
fn run(folder: &Path, words: &[&str]) -> Answer<Said> {
    let [out, err] = ["out", "err"].map(|name| folder.join(name));
    let mut command = emulated::command(env!("CARGO_BIN_EXE_contigo"));
    command.args(words).args(["--machine", "copy"]).current_dir(folder).env_remove("COLUMNS");
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let mut child = command.spawn()?;
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
    if said.status.is_none() { Err(format!("{words:?}: {said:?}").into()) } else { Ok(said) }
}

/// A folder with a copy of a board in it, and with room outside.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(board: fn(&Path) -> Root) -> Answer<Self> {
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
            ("dev/mem", ""),
        ] {
            root.put(file, text);
        }
        root.register(0xf800_0900, 7);
        root.link("proc/77/fd/3", "/dev/uio0");
        root.link(
            "sys/class/fpga_region/region0/of_node",
            "../../../firmware/devicetree/base/amba",
        );
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

/// A new command, or a new option of one, is run as well.
#[test]
fn every_command_and_option_is_run() -> Outcome {
    let (mut todo, mut found) = (vec![Vec::<String>::new()], 0);
    while let Some(command) = todo.pop() {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let help = Run::of(&[&words[..], &["--help"]].concat())?.ends(0).stdout();
        let (_, commands) = help.split_once("\nCommands:\n").unwrap_or_default();
        for line in commands.lines().take_while(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().unwrap_or_default();
            if name != "help" && !line.starts_with("   ") {
                todo.push([command.clone(), vec![name.to_owned()]].concat());
            }
        }
        let options: Vec<_> =
            help.lines().filter_map(|line| line.trim().strip_prefix("--")).collect();
        if !options.iter().any(|option| option.starts_with("machine ")) {
            continue;
        }
        found += 1;
        for option in options {
            let name = format!("--{}", option.split(' ').next().unwrap_or_default());
            let full = format!("{} {name}", words.join(" "));
            let is_run = |run: &&[&str]| run.starts_with(&words) && run.contains(&&*name);
            let is_known = name == "--machine" || OTHERS.contains(&&*full);
            assert!(is_known || RUNS.iter().any(is_run), "{full}");
        }
    }
    assert_eq!(found, RUNS.len() / 2);
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
    for words in RUNS {
        assert_ne!(run(world.path(), words)?.status, Some(2), "{words:?}");
    }
    assert_eq!(watch.events()?, [""; 0]);
    Ok(())
}

/// Each file and each folder in turn, so that the rest leads the tool there; one of eleven on a
/// developer's machine, links and pipes in turn.
#[test]
fn no_link_leads_out_no_pipe_is_opened() -> Outcome {
    if emulated::finds_no_more("paths are the kernel's") {
        return Ok(());
    }
    let world = World::new(machines::pynq)?;
    let (files, folders) = below(&world.copy())?;
    let plants = files.iter().flat_map(|file| [(Plant::LinkOut, file), (Plant::Pipe, file)]);
    let plants = plants.chain(folders.iter().map(|folder| (Plant::LinkOut, folder)));
    let every = if rounds(10) == 10 { 1 } else { 11 };
    let mut wrong = Vec::new();
    for (plant, path) in plants.step_by(every) {
        let once = || -> Answer<Vec<String>> {
            let to = world.outside().join("there");
            plant.plant(path, &to)?;
            let watch = plant.watch(path, &to)?;
            // With all options: they do more than without.
            let ran =
                RUNS.iter().skip(1).step_by(2).filter_map(|words| run(world.path(), words).err());
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
            for words in RUNS {
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
        let before: Vec<_> =
            RUNS.iter().map(|words| run(world.path(), words)).collect::<Answer<_>>()?;
        assert!(before.iter().any(|said| said.status == Some(0)), "{before:?}");
        let elsewhere = world.copy().join("elsewhere");
        let (files, _) = below(&world.copy())?;
        fs::create_dir(&elsewhere)?;
        for (number, path) in files.into_iter().enumerate() {
            Plant::Absolute.plant(&path, &elsewhere.join(number.to_string()))?;
        }
        for (words, before) in RUNS.iter().zip(before) {
            assert_eq!(run(world.path(), words)?, before, "{words:?}");
        }
    }
    Ok(())
}
