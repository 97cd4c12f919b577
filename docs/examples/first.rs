// README: a kernel of Vitis HLS, on a simulated board. The page has all of the lines below.

use contigo::{Queue, Region, drivers::ap_ctrl::ApCtrl, design::kernel, names::{Attach, DeviceName}};
const MAP: &[u8] = br#"{"name": "copy", "protocol": "ap_ctrl_chain", "scalars": [{"name": "n", "offset": "0x30"}],
  "pointers": [{"name": "from", "offset": "0x18", "direction": "in", "bytes": "n"},
               {"name": "to", "offset": "0x24", "direction": "out", "bytes": "n"}]}"#;

fn main() -> contigo::Result<()> {
    let device = "sim:ap_ctrl".parse::<DeviceName>()?.open()?;           // "contigo:copy@40000000"
    let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?; // "contigo"
    let map = kernel::any(MAP, "")?.build()?;                          // or what the tools write
    // SAFETY: the device is this kernel, and no other code drives it.
    let mut copy = Queue::new(unsafe { ApCtrl::open(device.attach(Attach::default())?, map)? }, 1)?;
    let (mut from, to) = (region.alloc(1000, region.line())?, region.alloc(1000, region.line())?);
    from.view_mut::<u8>()?.fill(7);
    let operands = [from.to_device(..1000), to.from_device(..1000)];
    let [_, to] = copy.run(operands, &[1000], std::time::Duration::from_millis(20))?.buffers; // bounded
    assert_eq!(to.view_at::<u8>(..1000)?, [7; 1000]);
    println!("1000 bytes copied");
    Ok(())
}
