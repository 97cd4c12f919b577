//! An overlay of the device tree on an FPGA region, through configfs: the kernel closes the
//! region's bridges, loads the file, and opens the bridges again.
//!
//! # References
//! Linux, `drivers/fpga/of-fpga-region.c` and `Documentation/devicetree/bindings/fpga/`. Mainline
//! does not have the folder in configfs: vendors' `Documentation/devicetree/configfs-overlays.txt`.
//! The blob: Devicetree Specification 0.4, chapter 5, "Flattened Devicetree (DTB) Format"; Linux,
//! `Documentation/devicetree/overlay-notes.rst`.

use super::{FpgaError, Manager, Way};
use crate::machine::Machine;

const REGIONS: &str = "sys/class/fpga_region";
const TREE: &str = "sys/firmware/devicetree/base";
const OVERLAYS: &str = "sys/kernel/config/device-tree/overlays";
/// The folder of Contigo's only overlay.
const OURS: &str = "sys/kernel/config/device-tree/overlays/contigo-fpga";

/// The paths of all regions in the device tree, if the kernel takes overlays for them.
pub(super) fn regions(machine: &Machine) -> Vec<String> {
    let (true, Ok(tree)) = (machine.has(OVERLAYS), machine.real(TREE)) else { return Vec::new() };
    let path = |id: String| {
        let nodes = [format!("{REGIONS}/{id}/of_node"), format!("{REGIONS}/{id}/device/of_node")];
        let node = nodes.iter().find_map(|node| machine.real(node).ok())?;
        Some(format!("/{}", node.strip_prefix(&tree).ok()?.to_str()?))
    };
    machine.list(REGIONS).into_iter().filter_map(path).collect()
}

/// Applies the overlay that names the file. The kernel refuses the overlay when the load fails.
pub(super) fn load(
    machine: &Machine,
    manager: &Manager,
    region: &str,
    name: &str,
    partial: bool,
) -> Result<(), FpgaError> {
    if machine.has(OURS) {
        return Err(FpgaError::Applied(format!("/{OURS}").into()));
    }
    machine
        .make_dir(OURS)
        .map_err(|error| FpgaError::Told { path: format!("/{OURS}").into(), error })?;
    let told = machine.write(format!("{OURS}/dtbo"), &blob(region, name, partial));
    // Some kernels take the blob, fail, and report that in this file only.
    let applied = machine.text(format!("{OURS}/status")).is_none_or(|status| status == "applied");
    let error = match told {
        Ok(()) if applied => return Ok(()),
        Ok(()) => None,
        Err(error) => Some(error),
    };
    let state = manager.state(machine);
    let way = Way::Overlay { region: region.to_owned() };
    let failed = FpgaError::Failed { way, state, words: String::new(), error };
    match machine.remove_dir(OURS) {
        Ok(()) => Err(failed),
        Err(error) => Err(FpgaError::Left {
            path: format!("/{OURS}").into(),
            error,
            failed: Box::new(failed),
        }),
    }
}

/// Whether an overlay of Contigo's is applied.
pub(super) fn applied(machine: &Machine) -> bool {
    machine.has(OURS)
}

/// Removes the overlay: the kernel removes its devices, and closes the region's bridges.
pub(super) fn unload(machine: &Machine) -> Result<(), FpgaError> {
    machine
        .remove_dir(OURS)
        .map_err(|error| FpgaError::Told { path: format!("/{OURS}").into(), error })
}

/// `FDT_BEGIN_NODE` and the other tokens of the structure block.
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROP: u32 = 3;
const END: u32 = 9;
const MAGIC: u32 = 0xd00d_feed;
/// The format's version; below, the oldest version that its readers may have.
const VERSION: u32 = 17;
const COMPATIBLE: u32 = 16;
const HEADER_BYTES: u32 = 40;
/// The list of reserved memory has only its end mark: two words of 64 bits.
const RESERVED_BYTES: u32 = 16;

/// The smallest overlay for the region at `path` of the device tree: one fragment, with the file's
/// name in it.
fn blob(path: &str, firmware: &str, partial: bool) -> Vec<u8> {
    let mut blob = Blob::default();
    blob.begin("");
    blob.begin("fragment@0");
    blob.text("target-path", path);
    blob.begin("__overlay__");
    blob.text("firmware-name", firmware);
    if partial {
        blob.property("partial-fpga-config", &[]);
    }
    for _ in 0..3 {
        blob.word(END_NODE);
    }
    blob.word(END);
    blob.finish()
}

/// A tree during its writing: the structure, and the names of the properties.
#[derive(Default)]
struct Blob {
    structure: Vec<u8>,
    names: Vec<u8>,
}

impl Blob {
    fn word(&mut self, word: u32) {
        self.structure.extend(word.to_be_bytes());
    }

    /// Writes bytes, padded to a word.
    fn bytes(&mut self, bytes: &[u8]) {
        self.structure.extend(bytes);
        self.structure.resize(self.structure.len().next_multiple_of(4), 0);
    }

    fn begin(&mut self, name: &str) {
        self.word(BEGIN_NODE);
        self.bytes(format!("{name}\0").as_bytes());
    }

    fn text(&mut self, name: &str, value: &str) {
        self.property(name, format!("{value}\0").as_bytes());
    }

    fn property(&mut self, name: &str, value: &[u8]) {
        let at = length(&self.names);
        self.names.extend(format!("{name}\0").as_bytes());
        self.word(PROP);
        self.word(length(value));
        self.word(at);
        self.bytes(value);
    }

    fn finish(self) -> Vec<u8> {
        let structure = HEADER_BYTES + RESERVED_BYTES;
        let names = structure + length(&self.structure);
        let total = names + length(&self.names);
        let header = [
            MAGIC,
            total,
            structure,
            names,
            HEADER_BYTES,
            VERSION,
            COMPATIBLE,
            0,
            length(&self.names),
            length(&self.structure),
        ];
        let mut blob: Vec<u8> = header.into_iter().flat_map(u32::to_be_bytes).collect();
        blob.resize(structure as usize, 0);
        blob.extend(self.structure);
        blob.extend(self.names);
        blob
    }
}

/// A length of this blob, which has a few names and is far below 4 GiB.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, ErrorKind, Write as _};
    use std::process::{Command, Stdio};

    /// Reads the tree back as the device-tree compiler does, independently of this writer.
    fn read_back(blob: &[u8]) -> io::Result<String> {
        let mut dtc = Command::new("dtc")
            .args(["-q", "-I", "dtb", "-O", "dts"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        dtc.stdin.take().ok_or(ErrorKind::BrokenPipe)?.write_all(blob)?;
        let output = dtc.wait_with_output()?;
        assert!(output.status.success());
        Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_compiler_reads_what_is_written() -> io::Result<()> {
        let tree = match read_back(&blob("/fpga-full", "a.bin", true)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                writeln!(
                    io::stderr(),
                    "skipped: overlay::the_compiler_reads_what_is_written: there is no dtc"
                )?;
                return Ok(());
            }
            tree => tree?,
        };
        let fragment = "fragment@0 { target-path = \"/fpga-full\"; __overlay__ { \
                        firmware-name = \"a.bin\"; partial-fpga-config; }; };";
        assert_eq!(tree, format!("/dts-v1/; / {{ {fragment} }};"));
        let whole = read_back(&blob("/fpga-full", "a.bin", false))?;
        assert_eq!(whole, tree.replace(" partial-fpga-config;", ""));
        Ok(())
    }
}
