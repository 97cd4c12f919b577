//! The ports of a core in one cycle, as `shim/ports.h` has them: words of 32 bits, the lowest
//! first.

/// A core has at most so many AXI4 masters.
pub const MASTERS: usize = 3;
/// The words of the widest beat: 512 bits.
pub const DATA_WORDS: usize = 16;

/// The master's side of AXI-Lite.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "AXI's own names")]
pub struct LiteIn {
    pub awvalid: u32,
    pub awaddr: u32,
    pub wvalid: u32,
    pub wdata: u32,
    pub wstrb: u32,
    pub bready: u32,
    pub arvalid: u32,
    pub araddr: u32,
    pub rready: u32,
}

/// The core's side of AXI-Lite.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "AXI's own names")]
pub struct LiteOut {
    pub awready: u32,
    pub wready: u32,
    pub bvalid: u32,
    pub bresp: u32,
    pub arready: u32,
    pub rvalid: u32,
    pub rdata: u32,
    pub rresp: u32,
}

/// The memory's side of an AXI4 master.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "AXI's own names")]
pub struct AxiIn {
    pub awready: u32,
    pub wready: u32,
    pub bvalid: u32,
    pub bid: u32,
    pub bresp: u32,
    pub arready: u32,
    pub rvalid: u32,
    pub rid: u32,
    pub rresp: u32,
    pub rlast: u32,
    pub rdata: [u32; DATA_WORDS],
}

/// One address channel, AW or AR.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "AXI's own names")]
pub struct AxiAddress {
    pub valid: u32,
    pub id: u32,
    pub addr: [u32; 2],
    pub len: u32,
    pub size: u32,
    pub burst: u32,
}

/// The core's side of an AXI4 master.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "AXI's own names")]
pub struct AxiOut {
    pub aw: AxiAddress,
    pub ar: AxiAddress,
    pub wvalid: u32,
    pub wlast: u32,
    pub wdata: [u32; DATA_WORDS],
    pub wstrb: [u32; 2],
    pub bready: u32,
    pub rready: u32,
}

/// A beat of an AXI-Stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "AXI's own names")]
pub struct Beat {
    pub valid: u32,
    pub last: u32,
    pub keep: [u32; 2],
    pub data: [u32; DATA_WORDS],
}

/// All inputs of a core.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct In {
    /// 0: the reset line is pulled.
    pub rst_n: u32,
    /// Its registers.
    pub lite: LiteIn,
    /// Memory.
    pub axi: [AxiIn; MASTERS],
    /// The stream that it receives.
    pub stream: Beat,
    /// The stream that it sends has room.
    pub stream_ready: u32,
}

/// All outputs of a core, before the clock's edge.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    /// The interrupt line.
    pub irq: u32,
    /// Nothing will happen without a register's write or a stream's beat. 0 for a core that has no
    /// such port.
    pub idle: u32,
    /// 0: it resets the other ends of its streams, as AXI DMA does in a soft reset (PG021,
    /// `mm2s_prmry_reset_out_n`).
    pub stream_rst_n: u32,
    /// Its registers.
    pub lite: LiteOut,
    /// Its masters.
    pub axi: [AxiOut; MASTERS],
    /// The stream that it sends.
    pub stream: Beat,
    /// The stream that it receives has room.
    pub stream_ready: u32,
}

/// The ports that a core has, and their widths; 0: it has none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The data of each AXI4 master.
    pub data_bits: [u32; MASTERS],
    /// The data of the stream that it receives.
    pub stream_in_bits: u32,
    /// The data of the stream that it sends.
    pub stream_out_bits: u32,
    /// 1: it has registers.
    pub has_lite: u32,
    /// 1: it says whether it is idle.
    pub has_idle: u32,
    /// 1: it resets the other ends of its streams.
    pub has_stream_rst: u32,
}
