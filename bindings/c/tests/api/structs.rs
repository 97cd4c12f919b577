//! Structures of older and newer callers: what an older one does not have is its default, what a
//! newer one sets and this library does not know is refused.

use crate::common::*;
use contigo_c::*;
use core::mem;

/// A structure with a tail that this library does not know.
#[repr(C)]
#[derive(Clone, Copy)]
struct Newer<T> {
    known: T,
    tail: [u8; 24],
}

#[test]
fn an_older_callers_structure_is_taken() {
    // Before there were faults.
    let board = Board::with(&contigo_sim_options {
        struct_size: mem::offset_of!(contigo_sim_options, late_irq),
        hang: 1_000, // beyond what it says it has
        ..sim_options()
    });
    let operands = board.operands();
    ok(wait(board.start(&operands), 20_000));
    release_all(&operands);
    // Before there were ports on a simulated board.
    let older = contigo_port_options {
        struct_size: mem::offset_of!(contigo_port_options, sim),
        ..port_options(c"older", 99)
    };
    ok(contigo_port_close(answer(|port| unsafe { contigo_port_define(&older, port) })));
    board.close();
}

#[test]
fn newer_struct_is_taken_if_its_tail_is_0() {
    let mut newer = Newer { known: sim_options(), tail: [0; 24] };
    newer.known.struct_size = size_of::<Newer<contigo_sim_options>>();
    let sim = answer(|sim| unsafe { contigo_sim_open((&raw const newer).cast(), sim) });
    ok(contigo_sim_close(sim));
    newer.tail[3] = 1;
    let status = unsafe { contigo_sim_open((&raw const newer).cast(), &mut 0) };
    refused(status, CONTIGO_E_STRUCT, "contigo_sim_options has byte");
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for struct_size in [0, 1, 8, 15, 4097, usize::MAX] {
        let status = unsafe {
            contigo_sim_open(&contigo_sim_options { struct_size, ..sim_options() }, &mut 0)
        };
        refused(status, CONTIGO_E_STRUCT, "struct_size");
    }
    let board = Board::new();
    let mut info = contigo_region_info { struct_size: 3, syncs: 77, ..Default::default() };
    refused(
        unsafe { contigo_region_get_info(board.region, &mut info) },
        CONTIGO_E_STRUCT,
        "struct_size is 3",
    );
    assert_eq!(info.syncs, 77, "nothing was written");
    board.close();
}

#[test]
fn an_answer_fills_what_the_caller_has() {
    let board = Board::new();
    let mut newer = Newer { known: contigo_region_info::default(), tail: [0xFF; 24] };
    newer.known.struct_size = size_of::<Newer<contigo_region_info>>();
    ok(unsafe { contigo_region_get_info(board.region, (&raw mut newer).cast()) });
    assert_eq!((newer.known.len_bytes, newer.tail), (1 << 20, [0; 24]), "newer fields are 0");
    assert_eq!(newer.known.struct_size, size_of::<Newer<contigo_region_info>>(), "its size stays");
    board.close();
}

#[test]
fn the_text_is_cut_to_the_room_there_is() {
    refused(contigo_buf_release(1), CONTIGO_E_HANDLE, "no handle");
    let whole = last_error();
    let mut room = [0x55_u8; 16];
    let len = unsafe { contigo_last_error(room.as_mut_ptr().cast(), 8) };
    assert_eq!(
        (len, &room[..8], &room[8..]),
        (whole.len(), [&whole.as_bytes()[..7], &[0]].concat().as_slice(), [0x55; 8].as_slice())
    );
    assert_eq!(unsafe { contigo_last_error(room.as_mut_ptr().cast(), 0) }, whole.len());
    assert_eq!(room[0], whole.as_bytes()[0], "no room, nothing written");
}

#[test]
fn the_library_says_what_it_is() {
    let text = |text| unsafe { core::ffi::CStr::from_ptr(text) }.to_str().unwrap();
    assert_eq!(text(contigo_version()), env!("CARGO_PKG_VERSION"));
    assert_eq!(text(contigo_status_name(CONTIGO_E_STALE)), "CONTIGO_E_STALE");
    assert_eq!(text(contigo_status_name(12)), "?");
}
