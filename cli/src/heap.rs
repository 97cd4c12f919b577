//! The memory that `--heap` names.

use crate::{failure::Failure, machine::Machine};
use contigo::{Error, Mapping, Port, SyncScope};
use contigo_boards::sim::{WIDE, WIDE_COHERENT};
use nix::errno::Errno;
use std::{fmt, str::FromStr};

/// What to write after `--heap`.
pub(crate) const SYNTAX: &str = if cfg!(feature = "cuda") {
    "sim, hugetlb, u-dma-buf:NAME, dma-heap:NAME, cuda or cuda:N"
} else {
    "sim, hugetlb, u-dma-buf:NAME or dma-heap:NAME"
};

/// Where the memory comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "the variants have the backends' names, and the enum the option's")]
pub(crate) enum Heap {
    /// The simulated board's own.
    Sim,
    /// One huge page.
    HugeTlb,
    /// A u-dma-buf device, by its name under `/dev`.
    UDmaBuf(String),
    /// A dma-heap, by its name under `/dev/dma_heap`.
    DmaHeap(String),
    /// What CUDA pins for a GPU, by its ordinal; the engine is the GPU then.
    #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
    Cuda(u32),
}

impl Heap {
    /// Is there memory of that name on `machine`? Names are looked up, not opened.
    pub(crate) fn look_up(&self, machine: &Machine) -> Result<(), Failure> {
        let exists = match self {
            Self::Sim | Self::HugeTlb => true,
            // Who can say is the driver, when it is opened.
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Self::Cuda(_) => true,
            Self::UDmaBuf(name) => machine.u_dma_buf_names().contains(name),
            Self::DmaHeap(name) => machine.dma_heap_names().contains(name),
        };
        if exists { Ok(()) } else { Err(Failure::NoSuchMemory { heap: self.to_string(), exists: what_exists(machine) }) }
    }

    /// The first memory of `machine` that a real device could use, as far as its files say; it is not opened.
    pub(crate) fn first_real(machine: &Machine) -> Option<Self> {
        let shown = machine.shows_addresses().unwrap_or(false);
        let huge = || (shown && machine.huge_pages().is_some_and(|pages| pages.free > 0)).then_some(Self::HugeTlb);
        // Since then `/proc/self/pagemap` shows nothing for a dma-heap's mapping.
        let heaps_have_addresses = shown && machine.kernel_version().is_some_and(|version| version < (6, 9));
        let heap = || machine.dma_heap_names().into_iter().find(|name| heaps_have_addresses && name != "system").map(Self::DmaHeap);
        machine.u_dma_buf_names().into_iter().next().map(Self::UDmaBuf).or_else(huge).or_else(heap)
    }

    /// An error of this memory, with what to do about it.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        let denied = matches!(error, Error::Os { errno, .. } if [Errno::EACCES as i32, Errno::EPERM as i32].contains(&errno));
        let advice = match (self, error) {
            (Self::HugeTlb, Error::Os { errno, .. }) if errno == Errno::ENOMEM as i32 => {
                "reserve huge pages, as root: echo 4 > /proc/sys/vm/nr_hugepages"
            }
            (Self::HugeTlb, Error::Os { errno, .. }) if errno == Errno::EINVAL as i32 => "this kernel has no huge pages of 2 MiB",
            _ if denied => "contigo info says who may open it",
            (Self::UDmaBuf(_), Error::InUse { .. }) => "end the other program first",
            (Self::UDmaBuf(_), Error::Exhausted { .. }) => "declare a larger device",
            _ => "",
        };
        Failure::Memory { heap: self.to_string(), error, advice }
    }
}

/// The simulated master's port to real memory: it snoops where the memory is coherent, or where nobody could maintain its
/// caches. The engine is a program on the CPU, so it sees the caches either way; what the port says decides whether the
/// memory's own maintenance is done.
pub(crate) fn simulated_port(memory: &Mapping) -> Port {
    let maintained = matches!(memory.scope, SyncScope::Range { .. } | SyncScope::Whole);
    if memory.coherent.unwrap_or(!maintained) { WIDE_COHERENT } else { WIDE }
}

/// What `--heap` could name here, in words.
fn what_exists(machine: &Machine) -> String {
    let list = |kind: &str, names: Vec<String>| match names.as_slice() {
        [] => format!("no {kind}"),
        names => names.iter().map(|name| format!("{kind}:{name}")).collect::<Vec<_>>().join(", "),
    };
    let (devices, heaps) = (machine.u_dma_buf_names(), machine.dma_heap_names());
    format!("this machine has sim, hugetlb, {}, {}", list("u-dma-buf", devices), list("dma-heap", heaps))
}

impl FromStr for Heap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "sim" => Ok(Self::Sim),
            None if text == "hugetlb" => Ok(Self::HugeTlb),
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            None if text == "cuda" => Ok(Self::Cuda(0)),
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Some(("cuda", ordinal)) => ordinal.parse().map(Self::Cuda).map_err(|_| format!("cuda:N wants a number; write {SYNTAX}")),
            Some(("u-dma-buf", name)) if !name.is_empty() => Ok(Self::UDmaBuf(name.to_owned())),
            Some(("dma-heap", name)) if !name.is_empty() => Ok(Self::DmaHeap(name.to_owned())),
            _ => Err(format!("write {SYNTAX}; {}", what_exists(&Machine::this()))),
        }
    }
}

impl fmt::Display for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim => write!(f, "sim"),
            Self::HugeTlb => write!(f, "hugetlb"),
            Self::UDmaBuf(name) => write!(f, "u-dma-buf:{name}"),
            Self::DmaHeap(name) => write!(f, "dma-heap:{name}"),
            #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() -> Result<(), String> {
        for text in ["sim", "hugetlb", "u-dma-buf:udmabuf0", "dma-heap:linux,cma"] {
            assert_eq!(Heap::from_str(text)?.to_string(), text);
        }
        for text in ["", "sim:", "sim:1", "udmabuf0", "u-dma-buf:", "dma-heap", "hugetlb:2M"] {
            let refused = Heap::from_str(text).err();
            assert!(refused.as_ref().is_some_and(|message| message.contains(SYNTAX)), "{text}: {refused:?}");
        }
        Ok(())
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() -> Result<(), Box<dyn std::error::Error>> {
        let (_folder, machine) = crate::machine::tests::board()?;
        assert!(Heap::UDmaBuf("udmabuf0".into()).look_up(&machine).is_ok());
        assert!(Heap::DmaHeap("linux,cma".into()).look_up(&machine).is_ok());
        let refused = Heap::UDmaBuf("../udmabuf0".into()).look_up(&machine).err().map(|failure| failure.to_string());
        let expected = "--heap u-dma-buf:../udmabuf0: there is none of that name; \
                        this machine has sim, hugetlb, u-dma-buf:udmabuf0, u-dma-buf:udmabuf1, dma-heap:linux,cma";
        assert_eq!(refused.as_deref(), Some(expected));
        Ok(())
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = Error::Os { call: "mmap(MAP_HUGETLB)", errno: Errno::ENOMEM as i32 };
        assert!(Heap::HugeTlb.failure(error).to_string().contains("/proc/sys/vm/nr_hugepages"));
    }
}
