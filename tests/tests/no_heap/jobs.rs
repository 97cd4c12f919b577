//! Pools of two threads, queues, streams, tensors and kernels' maps without the heap.

use super::counting::count;
use super::{JOBS, LIMIT, SLOT, board};
use contigo::dlpack::{Contract, DataType, Foreign, Imported, Shape, TensorSpec, TensorTable};
use contigo::drivers::axi_dma::{AxiDmaConfig, Side};
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::stream::SourceConfig;
use contigo::sim::{Faults, SimBoard, SimDevice};
use contigo::{Align, Error, Port, Queue, Region, Stream};
use std::fmt::Write as _;
use std::time::Duration;

#[test]
fn none_on_two_threads_that_share_a_pool() {
    let board = board();
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(8, SLOT).unwrap();
    let work = || {
        let ((), allocations) = count(|| {
            for round in 0..=u8::MAX {
                let Ok(mut buf) = pool.take() else { continue };
                let _ = buf.view_mut::<u8>().map(|view| view.fill(round));
            }
        });
        allocations
    };
    let counts = std::thread::scope(|scope| {
        [scope.spawn(work), scope.spawn(work)].map(|thread| thread.join().unwrap())
    });
    assert_eq!(counts, [0, 0]);
}

#[test]
fn none_in_a_queue_and_a_stream() {
    for port in [SimBoard::port as fn(&SimBoard) -> Port, SimBoard::coherent_port] {
        let faults = Faults { late_irq: 100, lost_irq: 100, short: 100, error: 10, ..Faults::NONE };
        let board = SimBoard::with(12, faults);
        let source = SourceConfig { packet_bytes: 512, ..SourceConfig::default() };
        let model = AxiDmaModel::new(CoreSpec::camera(source, 512));
        let device = SimDevice::with_model(&board, port(&board), model);
        let (done, allocations) = count(|| {
            let region = Region::new(board.memory(64 << 10)?)?;
            let pool = region.pool(8, 512)?;
            let config = AxiDmaConfig { depth: Some(4), ..AxiDmaConfig::default() };
            let camera =
                |descriptors| device.window()?.channel(Side::S2mm, config, Some(descriptors));
            let (mut packets, mut faults) = (0, 0);
            let mut queue = Queue::new(camera(region.alloc(512, Align::LINE)?)?, 4)?;
            for _ in 0..JOBS {
                while !queue.is_full() && !queue.is_stopped() {
                    queue.submit([pool.take()?.from_device(..)], &[])?;
                }
                match queue.wait::<1>(LIMIT) {
                    Ok(Some(_)) => packets += 1,
                    Ok(None) => return Err(Error::Busy),
                    Err(_) => faults += 1,
                }
                while queue.take_back::<1>()?.is_some() {}
            }
            drop(queue);
            let mut stream = Stream::new(camera(region.alloc(512, Align::LINE)?)?, pool, 4, &[])?;
            for _ in 0..JOBS {
                if !stream.is_running() {
                    stream.start()?;
                }
                match stream.next(LIMIT) {
                    Ok(Some(frame)) => stream.give_back(frame.buf).map(|()| packets += 1)?,
                    Ok(None) => return Err(Error::Busy),
                    Err(_) => faults += 1,
                }
            }
            stream.stop()?;
            Ok::<_, Error>((packets > 1_900, faults > 5, packets + faults))
        });
        assert_eq!((done, allocations), (Ok((true, true, 2 * JOBS)), 0));
    }
}

#[test]
fn none_for_tensors_there_and_back() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = board();
    let region = contigo::Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(2, SLOT).unwrap();
    let frames = || {
        let spec = TensorSpec {
            contract: Contract::TVM,
            ..TensorSpec::new(DataType::F32, Shape::new(&[4, 4])?)
        };
        let (mut buf, mut last) = (pool.take()?, None);
        for _ in 0..1000 {
            let mut lent = TENSORS.lend(buf, &spec)?;
            // SAFETY: the runtime's own tensor, handed on as it is, with the runtime's deleter.
            let foreign = unsafe { Foreign::from_versioned(lent.tensor()?.as_ptr()) }?;
            let imported = Imported::new(&region, foreign, &Contract::TVM)?;
            last = Some(imported.dev_addr(&board.port())?);
            buf = imported.into_buf(lent)?.whole();
        }
        Ok::<_, Error>(last)
    };
    let (last, allocations) = count(frames);
    assert!(last.unwrap().is_some());
    assert_eq!(allocations, 0);
}

#[test]
fn kernel_map_and_jobs_allocate_nothing() {
    use contigo::design::kernel;
    use contigo::sim::SimDevice;
    use contigo::sim::ap_ctrl::ApCtrlModel;
    const HEADER: &[u8] = include_bytes!("../drivers/ap_ctrl/xfilter_hw.h");
    const HWH: &[u8] = include_bytes!("../drivers/ap_ctrl/system.hwh");
    let mut text = String::with_capacity(4096);
    let ((), allocations) = count(|| {
        let map = kernel::any(HEADER, "").unwrap().length("to_r", "4*n").build().unwrap();
        write!(text, "{map}").unwrap();
        assert_eq!(kernel::any(text.as_bytes(), "").unwrap().build().unwrap(), map);
        assert!(kernel::any(HWH, "filter_0").unwrap().build().is_ok());
        assert!(kernel::any(&HWH[..5_000], "filter_0").is_err());
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let pool = region.pool(4, 1024).unwrap();
        let kernel = <SimDevice<ApCtrlModel>>::new(&board, board.port());
        let mut queue = Queue::new(kernel.window().unwrap().driver().unwrap(), 2).unwrap();
        for _ in 0..100 {
            for _ in 0..2 {
                let [from, to] = [(); 2].map(|()| pool.take().unwrap());
                queue.submit([from.to_device(..64), to.from_device(..64)], &[64]).unwrap();
            }
            for _ in 0..2 {
                assert!(queue.wait::<2>(Duration::from_millis(1)).unwrap().is_some());
            }
        }
    });
    assert_eq!(allocations, 0);
}
