//! How a frame is started.

use super::*;

/// S2MM's control and status.
const CONTROL: usize = 0x30;
const STATUS: usize = 0x34;

#[test]
fn opening_resets_running_channel() {
    let board = SimBoard::new(1);
    let device = camera(&board, 1024, 50_000);
    let window = device.window().unwrap();
    // SAFETY: RS alone starts no frame.
    unsafe { window.write32(CONTROL, regs::RUN) };
    device.run_for(1).unwrap();
    let state = || (window.read32(CONTROL) & regs::RUN, window.read32(STATUS) & regs::HALTED);
    assert_eq!(state(), (regs::RUN, 0));
    // SAFETY: the model is built so.
    let open = |window| unsafe { AxiVdmaChannel::alone(window, Side::S2mm, CONFIG) };
    let channel = open(Lent::new(&window)).unwrap();
    assert_eq!(state(), (0, regs::HALTED));
    drop(channel);
    // One that does not end its reset is refused.
    cases! {
        open(Lent::with_bits(&window, STATUS, regs::RESERVED)).map(drop)
            => Err(Error::WillNotStop { device: "axi_vdma s2mm", .. }),
    }
}

/// A channel that stays halted, as one whose clock has stopped.
#[test]
fn channel_that_stays_halted_is_a_fault() {
    let (board, _, pool) = bench(1, 1, 1024);
    let device = camera(&board, 1024, 50_000);
    let window = device.window().unwrap();
    let halted = Lent::with_bits(&window, STATUS, regs::HALTED);
    // SAFETY: the model is built so.
    let channel = unsafe { AxiVdmaChannel::alone(halted, Side::S2mm, CONFIG) }.unwrap();
    let mut queue = Queue::new(channel, 1).unwrap();
    cases! {
        queue.refuses(receives(&pool, ..), &[])
            => Error::Fault { what, .. } if what.starts_with("Halted stayed"),
    }
}

/// Every store is the job's frame, however many there are, and whether or not the configuration
/// states their number.
#[test]
fn no_frame_goes_to_the_frame_of_an_earlier_job() {
    for (address_bits, frame_stores) in
        [(32, 1), (32, 3), (32, 16), (32, 17), (32, 32), (40, 1), (40, 8), (40, 9), (40, 16)]
    {
        for said in [0, frame_stores] {
            let (board, _, pool) = bench(1, 1, 1024);
            let spec = AxiVdmaSpec { address_bits, frame_stores, ..AxiVdmaSpec::default() };
            let device = built(&board, 1024, 50_000, spec);
            let config = AxiVdmaConfig { address_bits, frame_stores: said, ..CONFIG };
            let mut queue = open(&device, config);
            for number in 0..33 {
                let [frame] = queue.run(receives(&pool, ..), &[], LIMIT).unwrap().buffers;
                assert!(
                    packet::is(number, frame.view::<u8>().unwrap()),
                    "{address_bits} bits, {frame_stores} stores, frame {number}"
                );
            }
            clean(&board);
        }
    }
    assert_eq!(AxiVdmaConfig::default().frame_stores, 0);
}
