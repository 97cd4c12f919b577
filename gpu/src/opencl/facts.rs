//! The facts that a device of OpenCL tells of itself.

use super::error::check;
use cl3::device::{
    CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
    CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_MEM_BASE_ADDR_ALIGN,
    CL_DEVICE_NAME, CL_DEVICE_TYPE, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU,
    CL_DEVICE_TYPE_GPU, CL_DEVICE_VERSION, get_device_data,
};
use cl3::platform::{CL_PLATFORM_NAME, get_platform_data};
use cl3::types::{cl_device_id, cl_platform_id};
use contigo::{Align, Error, Result};

/// The facts that a device of OpenCL tells of itself (OpenCL 3.0, 4.2, `clGetDeviceInfo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenClFacts {
    /// Its number among the devices of all platforms.
    pub ordinal: u32,
    /// Its name.
    pub name: String,
    /// The name of the platform, which is the driver's.
    pub platform: String,
    /// The version that it says it has: `OpenCL 3.0 PoCL HSTR: …`.
    pub version: String,
    /// The same as numbers: `(3, 0)`. `(0, 0)`: the version has another form.
    pub version_number: (u32, u32),
    /// The kind of device.
    pub kind: OpenClKind,
    /// Do CPU and device share one memory? (`CL_DEVICE_HOST_UNIFIED_MEMORY`.) Then nothing is
    /// copied.
    pub host_unified_memory: bool,
    /// Where a sub-buffer may begin: at multiples of so many bytes.
    /// (`CL_DEVICE_MEM_BASE_ADDR_ALIGN`, which is in bits.)
    pub base_addr_align_bytes: usize,
    /// The most work items of a group. A kernel may have less.
    pub max_group_items: usize,
    /// The most work items of a group in x, y and z.
    pub max_items: [usize; 3],
    /// The longest block of memory, in bytes.
    pub max_alloc_bytes: u64,
    /// Is there a compiler for kernels' source?
    pub compiler: bool,
}

/// The kind of a device (`CL_DEVICE_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenClKind {
    /// The machine's own processors: pocl's device.
    Cpu,
    /// A GPU.
    Gpu,
    /// An accelerator, as an FPGA's.
    Accelerator,
    /// Something else.
    Other,
}

impl OpenClFacts {
    /// The alignment of operands, where this device can have them.
    pub(super) fn align(&self) -> Result<Align> {
        if self.version_number < (1, 1) {
            let fix = "use another one: OpenCL 1.1 is the oldest that is taken";
            return Err(Error::Unsupported {
                what: "this device has no sub-buffers (it is older than OpenCL 1.1)",
                fix,
            });
        }
        Ok(Align::new(self.base_addr_align_bytes)?.max(Align::LINE))
    }
}

/// Asks `device` for all of them.
pub(super) fn ask(
    ordinal: u32,
    platform: cl_platform_id,
    device: cl_device_id,
) -> Result<OpenClFacts> {
    let bytes = |what| check("clGetDeviceInfo", get_device_data(device, what));
    let number = |what| bytes(what).map(|bytes| word(&bytes));
    let version = text(&bytes(CL_DEVICE_VERSION)?);
    let kind = match number(CL_DEVICE_TYPE)? {
        kind if kind & CL_DEVICE_TYPE_GPU != 0 => OpenClKind::Gpu,
        kind if kind & CL_DEVICE_TYPE_ACCELERATOR != 0 => OpenClKind::Accelerator,
        kind if kind & CL_DEVICE_TYPE_CPU != 0 => OpenClKind::Cpu,
        _ => OpenClKind::Other,
    };
    let bits = number(CL_DEVICE_MEM_BASE_ADDR_ALIGN)?;
    let align = usize::try_from(bits / 8).ok().filter(|align| align.is_power_of_two());
    let items = bytes(CL_DEVICE_MAX_WORK_ITEM_SIZES)?;
    let mut items = items.chunks(size_of::<usize>()).map(|bytes| size(word(bytes)));
    Ok(OpenClFacts {
        ordinal,
        name: text(&bytes(CL_DEVICE_NAME)?),
        platform: text(&check("clGetPlatformInfo", get_platform_data(platform, CL_PLATFORM_NAME))?),
        version_number: numbers(&version).unwrap_or_default(),
        version,
        kind,
        // Deprecated since OpenCL 2.0, so that a device may not know it.
        host_unified_memory: number(CL_DEVICE_HOST_UNIFIED_MEMORY).is_ok_and(|is| is != 0),
        base_addr_align_bytes: align
            .ok_or(Error::Unexpected { name: "CL_DEVICE_MEM_BASE_ADDR_ALIGN", value: bits })?,
        max_group_items: size(number(CL_DEVICE_MAX_WORK_GROUP_SIZE)?),
        max_items: [(); 3].map(|()| items.next().unwrap_or(1)),
        max_alloc_bytes: number(CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        compiler: number(CL_DEVICE_COMPILER_AVAILABLE)? != 0,
    })
}

/// A number of up to eight bytes, in this processor's order.
pub(super) fn word(bytes: &[u8]) -> u64 {
    let pick = |at: usize| bytes.get(at).copied().map_or(0, u64::from);
    let place =
        |at: usize| if cfg!(target_endian = "big") { bytes.len().min(8) - 1 - at } else { at };
    (0..bytes.len().min(8)).fold(0, |sum, at| sum | pick(at) << (8 * place(at)))
}

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A text up to its NUL.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
        .trim()
        .to_owned()
}

/// The numbers of `OpenCL <major>.<minor> …`.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.strip_prefix("OpenCL ")?.split(' ').next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_texts_and_versions_are_read() {
        assert_eq!(
            (word(&[]), word(&0x0102_0304_u32.to_ne_bytes()), word(&u64::MAX.to_ne_bytes())),
            (0, 0x0102_0304, u64::MAX)
        );
        assert_eq!(text(b"pocl \0rest"), "pocl");
        assert_eq!(numbers("OpenCL 3.0 PoCL HSTR"), Some((3, 0)));
        assert_eq!(numbers("OpenCL 1.0"), Some((1, 0)));
        assert_eq!((numbers("OpenGL 4.6"), numbers("OpenCL x.y")), (None, None));
    }
}
