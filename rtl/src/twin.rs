//! A second core with other values in its registers at power-on: what it says otherwise depends on
//! them. Verilator has no X; two cores have.

use crate::core::{Core, NoCore, PowerOn};
use crate::ports::{AxiAddress, AxiOut, Beat, In, Out};

/// The second core. A difference is reported once, and the next one after a cycle without.
#[derive(Debug)]
pub(crate) struct Twin {
    core: Core,
    told: bool,
}

impl Twin {
    pub(crate) fn open(name: &str) -> Result<Self, NoCore> {
        Ok(Self { core: Core::open(name, PowerOn::Ones)?, told: false })
    }

    /// It gets the same inputs. Does it say something else than `out`, for the first time?
    pub(crate) fn differs(&mut self, input: &In, out: &Out) -> bool {
        let other = said(&self.core.step(input));
        let differs = other != said(out);
        !std::mem::replace(&mut self.told, differs) && differs
    }
}

/// The outputs, without those that mean nothing in this cycle.
fn said(out: &Out) -> Out {
    let mut said = *out;
    (said.lite.bresp, said.lite.rdata, said.lite.rresp) = (
        if said.lite.bvalid == 1 { said.lite.bresp } else { 0 },
        if said.lite.rvalid == 1 { said.lite.rdata } else { 0 },
        if said.lite.rvalid == 1 { said.lite.rresp } else { 0 },
    );
    for axi in &mut said.axi {
        *axi = AxiOut { aw: address(&axi.aw), ar: address(&axi.ar), ..data(axi) };
    }
    said.stream = beat(&said.stream);
    said
}

fn address(address: &AxiAddress) -> AxiAddress {
    if address.valid == 1 { *address } else { AxiAddress::default() }
}

/// The lanes that no strobe writes hold anything.
fn data(axi: &AxiOut) -> AxiOut {
    let mut data = *axi;
    if axi.wvalid == 0 {
        (data.wlast, data.wdata, data.wstrb) = (0, [0; _], [0; _]);
    }
    mask(&mut data.wdata, data.wstrb);
    data
}

fn beat(beat: &Beat) -> Beat {
    if beat.valid == 0 {
        return Beat::default();
    }
    let mut said = *beat;
    mask(&mut said.data, said.keep);
    said
}

fn mask(words: &mut [u32], bytes: [u32; 2]) {
    let bytes = u64::from(bytes[0]) | u64::from(bytes[1]) << 32;
    for (n, word) in words.iter_mut().enumerate() {
        let lanes = bytes.checked_shr(u32::try_from(4 * n).unwrap_or(u32::MAX)).unwrap_or(0) & 0xF;
        let mask = (0..4)
            .filter(|lane| lanes >> lane & 1 == 1)
            .fold(0, |mask, lane| mask | 0xFF << (8 * lane));
        *word &= mask;
    }
}
