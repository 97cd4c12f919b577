//! The memory and devices of a machine, and why it lacks the rest.

use super::device_name::DeviceName;
use super::files::Files;
use super::found::Facts;
use super::kinds::{DEVICES, MEMORIES, Row};
use super::memory_name::MemoryName;
use super::text::Text;
use super::{called, devices, memories, provided};
use contigo_core::types::Error;
use contigo_core::types::near::distance;
use core::fmt::{self, Write as _};
use nix::libc::ENOENT;

/// A machine's memory and devices, by the names that open them. It reads files under `/sys`,
/// `/proc` and `/dev`, and opens or changes nothing. Each call reads them anew; there is no heap,
/// and no table that could be full.
///
/// ```
/// use contigo::names::Inventory;
/// for memory in Inventory::here().memories() {
///     println!("{memory}"); // u-dma-buf:udmabuf0; or: no dma-heap: the kernel has no dma-heap: …
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Inventory<'r> {
    files: Files<'r>,
}

/// One memory or one device of a machine, or a kind that the machine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<N> {
    /// The kind.
    pub kind: &'static str,
    /// Its name; `None`: this machine has none of this kind.
    pub name: Option<N>,
    /// What is known of it.
    pub facts: Facts,
    /// Why there is none, or why it cannot be used as the machine is now, and what to do.
    pub why: Option<&'static str>,
}

/// The most entries of one kind that are listed. The longest list is that of PCI functions, of
/// which a PC has some tens.
const MOST: u32 = 256;

impl Inventory<'static> {
    /// The machine that this program runs on.
    #[must_use]
    pub const fn here() -> Self {
        Self::under("")
    }
}

impl<'r> Inventory<'r> {
    /// A machine whose files have `root` before them: a test's, or a container's.
    #[must_use]
    pub const fn under(root: &'r str) -> Self {
        Self { files: Files { root } }
    }

    /// Its memory: the kinds in the order in which a program that may choose tries them, each
    /// sorted by name; and one entry for each kind that is missing.
    pub fn memories(self) -> impl Iterator<Item = Entry<MemoryName>> + 'r {
        MEMORIES
            .iter()
            .flat_map(move |row| entries(self.files, row, memories::find, memories::facts))
    }

    /// Its devices, in the same way.
    pub fn devices(self) -> impl Iterator<Item = Entry<DeviceName>> + 'r {
        DEVICES.iter().flat_map(move |row| entries(self.files, row, devices::find, devices::facts))
    }

    /// The answer to a memory name that does not exist: in words, what there is, and why the rest
    /// is missing.
    #[must_use]
    pub const fn memory_answer(self) -> impl fmt::Display + 'r {
        Answer(move |f: &mut fmt::Formatter<'_>| answer(f, self.memories()))
    }

    /// `error`, with which opening `name` ended, and what this machine adds: why that memory cannot
    /// be used, or, if none has that name, what there is.
    pub fn memory_error(self, name: &MemoryName, error: Error) -> impl fmt::Display + use<'r> {
        explained(error, name.kind(), listed(self.files, *name), move || self.memories())
    }

    /// The same for a device.
    pub fn device_error(self, name: &DeviceName, error: Error) -> impl fmt::Display + use<'r> {
        explained(error, name.kind(), listed(self.files, *name), move || self.devices())
    }

    /// The answer to a device name that does not exist: the devices that can be opened.
    #[must_use]
    pub const fn device_answer(self) -> impl fmt::Display + 'r {
        let ready =
            move || self.devices().filter(|entry| entry.name.is_some() && entry.why.is_none());
        // A PC has tens of PCI functions that it cannot do without.
        Answer(move |f: &mut fmt::Formatter<'_>| {
            answer(f, ready()).and_then(|()| f.write_str("; contigo info lists the rest"))
        })
    }
}

/// `name` as the inventory lists it: a contigo device by the kernel's name for it.
fn listed<N: fmt::Display + core::str::FromStr>(files: Files<'_>, name: N) -> N {
    const CONTIGO: &str = "contigo:";
    let by_kernel = || {
        let mut text = heapless::String::<{ Text::MAX_BYTES }>::new();
        write!(text, "{name}").ok()?;
        let (before, called) = text.rsplit_once(CONTIGO)?;
        let whole = Text::join(&[before, CONTIGO, &called::name_of(called, files)?])?;
        whole.as_str().parse().ok()
    };
    by_kernel().unwrap_or(name)
}

/// Calls a function with the argument of every name that exists of a kind.
type Find<K> = fn(K, Files<'_>, &mut dyn FnMut(&str));

/// Every entry of a kind, or one entry that says why there is none.
fn entries<'r, K: Copy, N: core::str::FromStr>(
    files: Files<'r>,
    row: &'static Row<K>,
    find: Find<K>,
    look: fn(K, Files<'_>, &str) -> Facts,
) -> impl Iterator<Item = Entry<N>> + use<'r, K, N> {
    let built_in = row.is_built_in() && provided::is_here(row.kind);
    let (mut last, mut any): (Option<Text>, bool) = (None, false);
    let mut left = if built_in { MOST } else { 0 };
    let none =
        move |why| Entry { kind: row.kind, name: None, facts: Facts::default(), why: Some(why) };
    let mut missing =
        Some(none(if built_in { row.missing } else { "it is not built into this program" }));
    core::iter::from_fn(move || {
        while left > 0 {
            left -= 1;
            let Some(next) = after(files, row.id, find, last) else { break };
            last = Some(next);
            let argument = next.as_str();
            let whole =
                Text::join(&[row.kind, if argument.is_empty() { "" } else { ":" }, argument]);
            // A device whose text is no name cannot be opened by one.
            if let Some(name) = whole.and_then(|name| name.as_str().parse().ok()) {
                any = true;
                let facts = look(row.id, files, argument);
                return Some(Entry {
                    kind: row.kind,
                    name: Some(name),
                    facts,
                    why: facts.unusable,
                });
            }
        }
        left = 0;
        missing.take().filter(|_| !any)
    })
}

/// The least of what `find` finds that comes after `last`.
fn after<K>(files: Files<'_>, kind: K, find: Find<K>, last: Option<Text>) -> Option<Text> {
    let mut least: Option<Text> = None;
    find(kind, files, &mut |found| {
        let is_later = last.as_ref().is_none_or(|last| found > last.as_str());
        if is_later && least.as_ref().is_none_or(|least| found < least.as_str()) {
            least = Text::new(found).or(least);
        }
    });
    least
}

/// Displays by a function.
struct Answer<F>(F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for Answer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0)(f)
    }
}

fn answer<N: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    entries: impl Iterator<Item = Entry<N>>,
) -> fmt::Result {
    let mut before = "this machine has ";
    for entry in entries {
        write!(f, "{before}{entry}")?;
        before = "; ";
    }
    Ok(())
}

/// The most entries that an error lists.
const TOLD: usize = 8;

/// The entries of one kind, those first whose names are most like `asked`; of the other kinds,
/// those that can be opened. [`TOLD`] at most, so that the error is still seen.
fn short<N: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    kind: &str,
    asked: &impl fmt::Display,
    all: impl Iterator<Item = Entry<N>>,
) -> fmt::Result {
    let text = |name: &dyn fmt::Display| {
        let mut text = heapless::String::<{ Text::MAX_BYTES }>::new();
        write!(text, "{name}").map(|()| text)
    };
    let (asked, mut told, mut is_cut) =
        (text(asked)?, heapless::Vec::<(usize, Entry<N>), TOLD>::new(), false);
    for entry in all {
        let far = match &entry.name {
            Some(name) if entry.kind == kind => distance(&asked, &text(name)?),
            None if entry.kind == kind => 0,
            // After those of the kind, in their order.
            Some(_) if entry.why.is_none() => usize::MAX,
            _ => {
                is_cut = true;
                continue;
            }
        };
        let place = told.iter().position(|(known, _)| *known > far).unwrap_or(told.len());
        if told.is_full() {
            is_cut = true;
            if place < TOLD {
                told.pop();
            }
        }
        // If the list is full, all its entries are nearer.
        let _ = told.insert(place, (far, entry));
    }
    answer(f, told.into_iter().map(|(_, entry)| entry))?;
    f.write_str(if is_cut { "; contigo info lists the rest" } else { "" })
}

/// `error`, and why `name` cannot be used, or what there is in its place among `all`.
fn explained<N: fmt::Display + PartialEq, I: Iterator<Item = Entry<N>>>(
    error: Error,
    kind: &'static str,
    name: N,
    all: impl Fn() -> I,
) -> impl fmt::Display {
    Answer(move |f: &mut fmt::Formatter<'_>| {
        write!(f, "{error}")?;
        let why =
            all().find(|entry| entry.name.as_ref() == Some(&name)).and_then(|entry| entry.why);
        match (why, error) {
            // Its text already has the cure.
            (_, Error::NoMemory { .. }) => Ok(()),
            (Some(why), _) => write!(f, "; {why}"),
            // Its text already has the most similar names.
            (None, Error::NotFound { among, .. }) if among.lists() => Ok(()),
            (
                None,
                Error::NotFound { .. }
                | Error::AttributeMissing { .. }
                | Error::Os { errno: ENOENT, .. },
            ) => {
                f.write_str("; ")?;
                short(f, kind, &name, all())
            }
            _ => Ok(()),
        }
    })
}

impl<N: fmt::Display> fmt::Display for Entry<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.why) {
            (Some(name), None) => write!(f, "{name}"),
            (Some(name), Some(why)) => write!(f, "{name}, but {why}"),
            (None, why) => write!(f, "no {}: {}", self.kind, why.unwrap_or("")),
        }
    }
}
