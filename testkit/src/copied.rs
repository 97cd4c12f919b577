//! A copy of this tree, in which a test does what a page tells its reader to do.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

/// Why a test that builds a copy is skipped, which takes two to three minutes on two cores; `None`
/// where `CONTIGO_LONG=1` asks for it, as `.ci/nightly` does.
#[must_use]
pub fn why_not() -> Option<&'static str> {
    let asked = env::var_os("CONTIGO_LONG").is_some_and(|value| value == "1");
    (!asked).then_some("it builds a copy of this tree for minutes: CONTIGO_LONG=1 asks for it")
}

/// A copy of the files that git knows or would add. Programs build in it without a network. Their
/// builds are kept for the next run, beside the copy, so that only the first takes its minutes.
#[derive(Debug)]
pub struct Copied {
    /// Where the files came from.
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
}

impl Copied {
    /// A copy of `root` in the folder `scratch`, anew. `None` where git does not know the tree:
    /// then a copy would have everything that was built.
    ///
    /// Every file has the time of its original, by which cargo knows that it need not be compiled
    /// again. The files named by `changing` do not: an earlier run may have compiled a later
    /// version of them.
    ///
    /// # Errors
    /// An error of the files.
    pub fn new(root: &Path, scratch: &Path, changing: &[&str]) -> io::Result<Option<Self>> {
        let Some(files) = listed(root) else { return Ok(None) };
        let (tree, target) = (scratch.join("tree"), scratch.join("target"));
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        for file in files {
            let (from, to) = (root.join(&file), tree.join(&file));
            fs::create_dir_all(to.parent().unwrap_or(&tree))?;
            fs::copy(&from, &to)?;
            if !changing.iter().any(|changing| file == Path::new(changing)) {
                timed(&to, fs::metadata(&from)?.modified()?)?;
            }
        }
        Ok(Some(Self { root: root.to_owned(), tree, target }))
    }

    /// The copy.
    #[must_use]
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    /// Where cargo builds it.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes a file of the copy. With a `time`, it has that one, or its original's where that is
    /// later.
    ///
    /// # Errors
    /// An error of the file.
    pub fn write(&self, file: &str, text: &str, time: Option<SystemTime>) -> io::Result<()> {
        let path = self.tree.join(file);
        fs::create_dir_all(path.parent().unwrap_or(&self.tree))?;
        fs::write(&path, text)?;
        let original = fs::metadata(self.root.join(file)).and_then(|file| file.modified()).ok();
        time.map_or(Ok(()), |time| timed(&path, original.map_or(time, |original| original.max(time))))
    }

    /// The files that are not what the original's are, or that it has not.
    ///
    /// # Errors
    /// An error of the files.
    pub fn changed(&self) -> io::Result<BTreeSet<PathBuf>> {
        let mut found = Vec::new();
        walk(&self.tree, &mut found)?;
        let files = found.iter().filter_map(|path| path.strip_prefix(&self.tree).ok());
        let differs = |file: &&Path| fs::read(self.root.join(file)).ok() != fs::read(self.tree.join(file)).ok();
        Ok(files.filter(differs).map(Path::to_owned).collect())
    }

    /// A program in the copy, as a person would start it: with this cargo, and without a network.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let cargo = Path::new(env!("CARGO")).parent().map(Path::to_owned).unwrap_or_default();
        let path = format!("{}:{}", cargo.display(), env::var("PATH").unwrap_or_default());
        let mut command = Command::new(program);
        command.current_dir(&self.tree).env("PATH", path).env("CARGO_TARGET_DIR", &self.target);
        command.env("CARGO_NET_OFFLINE", "true").env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        // The build is for this machine, whichever processor this test itself was built for.
        command.env_remove("CARGO_BUILD_TARGET").env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    }
}

/// Runs it to its end: did it succeed, and what did it say?
///
/// # Errors
/// It could not be started.
pub fn said(command: &mut Command) -> io::Result<(bool, String)> {
    let output = command.output()?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok((output.status.success(), text.join("\n")))
}

/// The files that git knows or would add.
fn listed(root: &Path) -> Option<Vec<PathBuf>> {
    let listed =
        Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root).output().ok()?;
    let names = String::from_utf8(listed.stdout).ok().filter(|_| listed.status.success())?;
    Some(names.split('\0').filter(|name| root.join(name).is_file()).map(PathBuf::from).collect())
}

fn timed(file: &Path, time: SystemTime) -> io::Result<()> {
    fs::File::options().append(true).open(file)?.set_modified(time)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, found)? } else { found.push(path) }
    }
    Ok(())
}
