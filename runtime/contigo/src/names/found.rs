//! A machine's files about each kind, and the reasons why one cannot be used.

use super::called::{DEV_NODES, first_register};
use super::files::{Files, LINE_MAX_BYTES, link, number, text};
use contigo_core::linux::memory::u_dma_buf;
use contigo_core::linux::os::fd::Fd;
use contigo_core::linux::os::{dir, pagemap};
use core::fmt::Write as _;

/// The facts that are known of one memory or device without opening it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// How large it is, in bytes: memory that is there, or the first window of registers.
    pub len_bytes: Option<u64>,
    /// Its first address, for the kernel: a block's bus address, or the address of the registers.
    pub addr: Option<u64>,
    /// Whether the kernel reports that it is coherent for its device.
    pub coherent: Option<bool>,
    /// Why this process cannot use it as the machine is now, and what to do.
    pub unusable: Option<&'static str>,
}

const CLOSED: &str =
    "this user may not open it: see the udev rules in kernel-helpers/udev, or be root";
const HIDDEN: &str =
    "/proc/self/pagemap hides addresses from this user: be root, or give the program CAP_SYS_ADMIN";
const HEAPS: &str = "dev/dma_heap";
pub(super) const FUNCTIONS: &str = "sys/bus/pci/devices";
const UIO: &str = "sys/class/uio";

fn closed(files: Files<'_>, path: &[&str]) -> Option<&'static str> {
    files.denies(path).then_some(CLOSED)
}

/// Returns advice if the kernel hides from this process where its pages are: looks up one of its
/// own pages (Linux `Documentation/admin-guide/mm/pagemap.rst`: bits 0 to 54 are the frame, 0 for a
/// process without the privilege).
fn hides_addresses(files: Files<'_>) -> Option<&'static str> {
    let here = 0_u8;
    let mut entry = [0];
    let page = (&raw const here).addr() as u64 / pagemap::page_bytes().ok()? as u64;
    let mut shown = || pagemap::read(page, &mut entry).is_ok() && entry[0] & ((1 << 55) - 1) != 0;
    (files.root.is_empty() && !shown()).then_some(HIDDEN)
}

// ---- Memory.

pub(super) fn u_dma_buf(files: Files<'_>, name: &str) -> Facts {
    const TRANSLATED: &str = "its node is behind an IOMMU or dma-ranges: a program opens it with \
     UDmaBuf::open_translated";
    let folders = u_dma_buf::CLASSES.map(|class| files.folder(&["sys/class", class, name]));
    let Some(folder) = folders.into_iter().flatten().next() else { return Facts::default() };
    Facts {
        len_bytes: number(&folder, c"size"),
        addr: number(&folder, c"phys_addr"),
        coherent: number(&folder, c"dma_coherent").map(|flag| flag != 0),
        unusable: if u_dma_buf::is_translated(&folder) {
            Some(TRANSLATED)
        } else {
            closed(files, &["dev", name])
        },
    }
}

/// What the module allocates for a contigo device.
pub(super) fn own_memory(files: Files<'_>, name: &str) -> Facts {
    Facts { unusable: dev_node(files, name).unusable, ..Facts::default() }
}

/// The heaps, and those of them that the module imports for a contigo device.
pub(super) fn dma_heaps(files: Files<'_>, each: &mut dyn FnMut(&str)) {
    files.each(HEAPS, &mut |heap| {
        each(heap);
        files.each(DEV_NODES, &mut |dev_node| {
            let mut both = heapless::String::<{ super::text::Text::MAX_BYTES }>::new();
            if write!(both, "{heap}@contigo:{dev_node}").is_ok() {
                each(&both);
            }
        });
    });
}

pub(super) fn dma_heap(files: Files<'_>, argument: &str) -> Facts {
    const SINCE_6_9: &str = "from Linux 6.9 on its address needs the kernel module contigo, which \
     has memory of its own: contigo:DEVICE";
    const SCATTERED: &str = "its blocks are scattered pages: a device needs an IOMMU and the \
     kernel module contigo for them";
    let (heap, contigo_device) = match argument.rsplit_once("@contigo:") {
        Some((heap, name)) => (heap, Some(name)),
        None => (argument, None),
    };
    let hidden = || files.kernel().is_some_and(|version| version >= (6, 9)).then_some(SINCE_6_9);
    let unusable = closed(files, &[HEAPS, heap]).or_else(|| match contigo_device {
        Some(name) => dev_node(files, name).unusable,
        None if heap == "system" => Some(SCATTERED),
        None => hidden().or_else(|| hides_addresses(files)),
    });
    Facts { unusable, ..Facts::default() }
}

const HUGE: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";

pub(super) fn huge_pages(files: Files<'_>, each: &mut dyn FnMut(&str)) {
    if files.folder(&[HUGE]).is_some() {
        each("");
    }
}

pub(super) fn hugetlb(files: Files<'_>, _: &str) -> Facts {
    const NONE: &str = "no huge page is free, as root: echo 16 > /proc/sys/vm/nr_hugepages";
    let free = files.folder(&[HUGE]).and_then(|folder| number(&folder, c"free_hugepages"));
    Facts {
        len_bytes: free.map(|pages| pages << 21),
        unusable: (free == Some(0)).then_some(NONE).or_else(|| hides_addresses(files)),
        ..Facts::default()
    }
}

// ---- Devices.

/// The functions that are bound to vfio-pci.
pub(super) fn vfio_functions(files: Files<'_>, each: &mut dyn FnMut(&str)) {
    files.each(FUNCTIONS, &mut |address| {
        let mut buffer = [0; LINE_MAX_BYTES];
        let driver = files
            .folder(&[FUNCTIONS, address])
            .and_then(|folder| link(&folder, c"driver", &mut buffer));
        if driver == Some("vfio-pci") {
            each(address);
        }
    });
}

pub(super) fn vfio(files: Files<'_>, address: &str) -> Facts {
    const GROUP: &str = "this user may not open /dev/vfio/GROUP, nor /dev/vfio/devices and \
     /dev/iommu: chown them, or be root";
    let mut buffer = [0; LINE_MAX_BYTES];
    let folder = files.folder(&[FUNCTIONS, address]);
    let group = folder.as_ref().and_then(|folder| link(folder, c"iommu_group", &mut buffer));
    let by_group = group.is_some_and(|group| !files.denies(&["dev/vfio", group]));
    let mut by_device = false;
    if let Some(folder) = files.folder(&[FUNCTIONS, address, "vfio-dev"]) {
        each(&folder, &mut |device| {
            by_device |=
                !files.denies(&["dev/vfio/devices", device]) && !files.denies(&["dev/iommu"])
        });
    }
    Facts { unusable: (!by_group && !by_device).then_some(GROUP), ..Facts::default() }
}

fn each(folder: &Fd, each: &mut dyn FnMut(&str)) {
    let _ = dir::each_name(folder, "vfio-dev", |name| {
        each(name);
        Ok(())
    });
}

pub(super) fn pci(files: Files<'_>, address: &str) -> Facts {
    const TAKEN: &str =
        "a driver of the kernel has it: bind uio_pci_generic or vfio-pci to it (driver_override)";
    let mut buffer = [0; LINE_MAX_BYTES];
    let folder = files.folder(&[FUNCTIONS, address]);
    let driver = folder.as_ref().and_then(|folder| link(folder, c"driver", &mut buffer));
    let unusable = match driver {
        None | Some("uio_pci_generic") => closed(files, &[FUNCTIONS, address, "config"]),
        Some(_) => Some(TAKEN),
    };
    Facts { unusable, ..Facts::default() }
}

pub(super) fn dev_node(files: Files<'_>, name: &str) -> Facts {
    let unusable = closed(files, &["dev/contigo", name]).or_else(|| unconfined(files, name));
    Facts { addr: first_register(name), unusable, ..Facts::default() }
}

/// Returns advice if the module refuses this process a device that nothing confines: it requires
/// `CAP_SYS_RAWIO` or its parameter `unprivileged`. Behind an IOMMU only opening tells.
fn unconfined(files: Files<'_>, name: &str) -> Option<&'static str> {
    const RAWIO: &str = "nothing confines it: be root, give the program CAP_SYS_RAWIO, or load \
     the module contigo with unprivileged=1";
    let mut buffer = [0; LINE_MAX_BYTES];
    let mut may = |folder: &[&str], file| {
        Some(files.folder(folder).and_then(|at| text(&at, file, &mut buffer))? == "Y")
    };
    let allowed = may(&["sys/module/contigo/parameters"], c"unprivileged")?;
    let has_iommu = files.folder(&[DEV_NODES, name, "device/iommu_group"]).is_some();
    (!allowed && !has_iommu && files.lacks_rawio()).then_some(RAWIO)
}

/// UIO devices by their nodes, or by their drivers' names for them. PCI functions have names of
/// their own.
pub(super) fn uio_devices(files: Files<'_>, each: &mut dyn FnMut(&str)) {
    files.each(UIO, &mut |device| {
        let mut buffer = [0; LINE_MAX_BYTES];
        if let Some(name) =
            files.folder(&[UIO, device]).and_then(|folder| uio_name(device, &folder, &mut buffer))
            && name != "uio_pci_generic"
        {
            each(name);
        }
    });
}

/// The argument in the name of the UIO device `device`: its node, or else its driver's name for it.
/// If that would be taken for another device's number, it is the device's number.
fn uio_name<'b>(device: &'b str, folder: &Fd, buffer: &'b mut [u8]) -> Option<&'b str> {
    let has_node = link(folder, c"device/of_node", buffer).is_some();
    let name = if has_node {
        link(folder, c"device/of_node", buffer)
    } else {
        text(folder, c"name", buffer)
    }?;
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { device.strip_prefix("uio") } else { Some(name) }
}

/// Where the first register of a UIO device's first map is.
fn uio_addr(folder: &Fd) -> Option<u64> {
    number(folder, c"maps/map0/addr")?.checked_add(number(folder, c"maps/map0/offset").unwrap_or(0))
}

pub(super) fn uio(files: Files<'_>, name: &str) -> Facts {
    const ALIKE: &str = "several devices have this name: open one by its number, uio:N";
    let (mut facts, mut alike) = (Facts::default(), 0);
    files.each(UIO, &mut |device| {
        let mut buffer = [0; LINE_MAX_BYTES];
        let Some(folder) = files.folder(&[UIO, device]) else { return };
        if uio_name(device, &folder, &mut buffer) == Some(name) {
            alike += 1;
            let unusable = closed(files, &["dev", device]);
            facts = Facts {
                len_bytes: number(&folder, c"maps/map0/size"),
                addr: uio_addr(&folder),
                unusable,
                coherent: None,
            };
        }
    });
    if alike > 1 { Facts { unusable: Some(ALIKE), ..Facts::default() } } else { facts }
}

/// NVIDIA's GPUs by their files: a card's, or the only one of a Jetson.
pub(super) fn gpus(files: Files<'_>, each: &mut dyn FnMut(&str)) {
    let (mut cards, mut jetson) = (false, false);
    files.each("dev", &mut |name| {
        if let Some(number) = name.strip_prefix("nvidia").filter(|rest| rest.parse::<u8>().is_ok())
        {
            cards = true;
            each(number);
        }
        jetson |= name == "nvhost-ctrl-gpu";
    });
    if jetson && !cards {
        each("0");
    }
}

/// Vulkan's drivers by their manifests (Vulkan-Loader, `docs/LoaderDriverInterface.md`, "Driver
/// Discovery on Linux"). Only the drivers know which GPUs they have.
pub(super) fn vulkan_drivers(files: Files<'_>, each: &mut dyn FnMut(&str)) {
    any_in(
        files,
        &["usr/share/vulkan/icd.d", "usr/local/share/vulkan/icd.d", "etc/vulkan/icd.d"],
        ".json",
        each,
    );
}

/// OpenCL's drivers, likewise (`cl_khr_icd`).
pub(super) fn opencl_drivers(files: Files<'_>, each: &mut dyn FnMut(&str)) {
    any_in(files, &["etc/OpenCL/vendors"], ".icd", each);
}

fn any_in(files: Files<'_>, folders: &[&'static str], end: &str, each: &mut dyn FnMut(&str)) {
    let mut any = false;
    for folder in folders {
        files.each(folder, &mut |name| any |= name.ends_with(end));
    }
    if any {
        each("");
    }
}
