//! Block designs: what a `.hwh` says of a core, in C.

use crate::common::*;
use contigo_c::*;
use core::ffi::{CStr, c_char};
use core::ptr;

const ZYNQ: &[u8] = include_bytes!("../../../../tests/tests/design/zynq.hwh");

fn core(name: &CStr) -> contigo_core_info {
    let mut info = empty();
    ok(unsafe { contigo_design_core(ZYNQ.as_ptr(), ZYNQ.len(), name.as_ptr(), &mut info) });
    info
}

fn text(field: &[c_char]) -> &str {
    unsafe { CStr::from_ptr(field.as_ptr()) }.to_str().unwrap()
}

#[test]
fn a_core_says_what_opens_it() {
    let dma = core(c"axi_dma_0");
    assert_eq!((dma.address, dma.window_bytes, dma.port_bits), (0x4040_0000, 0x1_0000, 64));
    assert_eq!((dma.interrupts, dma.interrupt[..3].to_vec()), (2, vec![29, 30, 0]));
    assert_eq!(
        (text(&dma.name), text(&dma.driver), text(&dma.device)),
        ("axi_dma_0", "axi_dma", "contigo:axi_dma_0@40400000")
    );
    assert!(text(&dma.settings).contains("length_bits=23") && dma.memory_bytes > 0);
    let gain = core(c"audio/gain");
    assert_eq!(
        (text(&gain.name), text(&gain.driver), text(&gain.settings), gain.port_bits),
        ("audio/gain", "", "", 0)
    );
    assert_eq!(
        (gain.interrupts, gain.interrupt[0]),
        (2, 0),
        "they reach a controller in the fabric"
    );
    assert_eq!(text(&core(c"scale_0").driver), "ap_ctrl");
}

#[test]
fn a_core_has_a_port() {
    let port = answer(|port| unsafe {
        contigo_design_port(ZYNQ.as_ptr(), ZYNQ.len(), c"axi_dma_0".as_ptr(), port)
    });
    ok(contigo_port_close(port));
    let status =
        unsafe { contigo_design_port(ZYNQ.as_ptr(), ZYNQ.len(), c"audio_gain".as_ptr(), &mut 0) };
    refused(status, CONTIGO_E_BAD_MAP, "none of its masters reaches the processor's memory");
}

#[test]
fn what_is_none_is_refused() {
    let mut info = empty();
    let cut =
        unsafe { contigo_design_core(ZYNQ.as_ptr(), 9_000, c"axi_dma_0".as_ptr(), &mut info) };
    refused(cut, CONTIGO_E_BAD_MAP, "the file ends before </EDKSYSTEM>");
    let unknown =
        unsafe { contigo_design_core(ZYNQ.as_ptr(), ZYNQ.len(), c"axi_dma_9".as_ptr(), &mut info) };
    refused(
        unknown,
        CONTIGO_E_BAD_MAP,
        "`axi_dma_9`: the design has no instance of this name; the nearest of its cores (4): \
         `axi_dma_0`, ",
    );
    let null = unsafe { contigo_design_core(ptr::null(), 9, c"x".as_ptr(), &mut info) };
    refused(null, CONTIGO_E_NULL, "hwh is NULL");
    let small = &mut contigo_core_info { struct_size: 8, ..empty() };
    refused(
        unsafe { contigo_design_core(ZYNQ.as_ptr(), ZYNQ.len(), c"scale_0".as_ptr(), small) },
        CONTIGO_E_STRUCT,
        "struct_size is 8",
    );
}
