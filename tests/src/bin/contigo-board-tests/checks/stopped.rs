#![allow(
    unsafe_code,
    reason = "a program for a PL330 that touches no memory, and a look at its registers"
)]
//! A process is killed while its PL330 executes a program that never ends: does the kernel stop the
//! channel? QEMU's model moves data inside the doorbell's register access, so a channel that waits
//! is the only one that a kill can find at work.

use super::{Verdict, Wrong, ensure, killed::killed_at_work, ok, pl330::WAIT_FOR_EVER};
use crate::{
    lab::Part,
    machine::Engine,
    setup::{Bench, Place},
};
use contigo::{
    Device, Driver, Queue, Region, Result,
    drivers::pl330::{Pl330, regs},
    names::Attach,
};
use contigo_exerciser::Line;
use std::{
    io::{PipeWriter, Write},
    thread::sleep,
    time::Duration,
};

/// In the child: begins the program, notifies the parent, and does not end the program.
struct Endless(PipeWriter);

impl Bench for Endless {
    type Out = Verdict;

    fn on<D: Driver>(self, _: &Region, _: Queue<D>, _: Line<'_>) -> Verdict {
        Err(Wrong::Failed("this engine is no PL330".into()))
    }

    fn on_pl330<D: Device>(
        mut self,
        _: &Region,
        mut driver: Pl330<D>,
        _: Line<'_>,
    ) -> Result<Verdict> {
        driver.stop()?;
        // SAFETY: it waits, and touches nothing.
        unsafe { driver.run_program(&WAIT_FOR_EVER)? };
        if driver.poll(Duration::from_millis(20))?.is_some() {
            return Ok(Err(Wrong::Failed("it was over too soon".into())));
        }
        let _ = self.0.write_all(&[1]);
        sleep(Duration::from_secs(60));
        Ok(Err(Wrong::Failed("it was not killed".into())))
    }
}

/// Without what was armed the channel runs on, and with it, it does not. A reset line that the lab
/// has for it does nothing meanwhile; then it does its work, and no program does.
pub(super) fn stopped(place: &Place) -> Verdict {
    let Engine::Soc { found, port, .. } = &place.engine else {
        return Err(Wrong::Failed("this engine is no PL330".into()));
    };
    let line = Part::reset_of(found.device.argument());
    let state_after = |armed: bool| {
        let (told, _) = killed_at_work(&Place { armed, ..*place }, Endless, Duration::ZERO)?;
        ensure(told, "it never began")?;
        if let Some(line) = &line {
            // Opening would reset it.
            return line
                .number("running")
                .map_err(|error| Wrong::Failed(format!("running: {error}")));
        }
        let device = ok(found.device.open())?;
        // SAFETY: it is only looked at.
        let device = ok(unsafe {
            device.attach_wired(*port, Attach { interrupt: false, ..Attach::default() })
        })?;
        Ok::<_, Wrong>(
            regs::CHANNELS
                .first()
                .map_or(u64::MAX, |channel| (channel.csr.read(&device) & regs::STATUS).into()),
        )
    };
    let inert = line.as_ref().map(|line| line.told("inert")).transpose();
    let inert = inert.map_err(|error| Wrong::Failed(format!("inert: {error}")))?;
    let loose = state_after(false)?;
    ensure(
        loose != u64::from(regs::STOPPED),
        "it is stopped without being armed: this check can catch nothing",
    )?;
    let held = state_after(true)?;
    ensure(
        held == u64::from(regs::STOPPED),
        format!("its user was killed, and the channel is in state {held}"),
    )?;
    drop(inert);
    let by_line = if line.is_some() {
        let reset = state_after(false)?;
        ensure(reset == u64::from(regs::STOPPED), "its reset line did not stop it")?;
        "; the reset line alone stops it, too"
    } else {
        ""
    };
    Ok(format!(
        "state {loose} after a kill of an unarmed user, {held} (stopped) after that of an armed one{by_line}"
    ))
}
