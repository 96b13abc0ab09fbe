//! `commands`: what a UI tells its session. Only while it has a seat there, and only while the policy
//! grants it to be one; answering questions is granted by itself.

use std::sync::Arc;

use sallyport_contract::services::{Seat, SeatError};
use sallyport_policy::{Capability, Grant};

use super::input;
use crate::{
    bindings::v0_1::sallyport::plugin::commands::{Error, Host},
    guest::Guest,
};

impl Host for Guest {
    fn submit_input(&mut self, text: String) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.submit(&text))
    }

    fn provide_confirmation(
        &mut self,
        confirmation_id: u64,
        approved: bool,
    ) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.confirm(confirmation_id, approved))
    }

    fn cancel(&mut self) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.end_turn())
    }
}

impl Guest {
    fn submit(&mut self, text: &str) -> Result<(), Error> {
        let seat = self.seat("hand input to the session", |_| true)?;
        input::count(&mut self.uses, &self.case).map_err(Error::Full)?;
        let text = input::checked(text, &self.case.warden().redactor()).map_err(Error::Invalid)?;
        let bytes = text.len();
        seat.submit(text).map_err(refused)?;
        self.case.ledger.used(Capability::Ui, format!("input ({bytes} bytes)"));
        Ok(())
    }

    fn confirm(&mut self, id: u64, approved: bool) -> Result<(), Error> {
        let may = |grant: &Grant| grant.ui().is_some_and(|ui| ui.confirm);
        let seat = self.seat("answer a question", may)?;
        self.count_command()?;
        seat.confirm(id, approved).map_err(refused)?;
        let answer = if approved { "approved" } else { "denied" };
        self.case.ledger.used(Capability::Ui, format!("question {id}: {answer}"));
        Ok(())
    }

    fn end_turn(&mut self) -> Result<(), Error> {
        let seat = self.seat("end a turn", |_| true)?;
        self.count_command()?;
        seat.cancel().map_err(refused)?;
        self.case.ledger.used(Capability::Ui, "ended the turn".to_owned());
        Ok(())
    }

    /// The run's seat at the session, for one command.
    fn seat(&self, what: &str, may: impl FnOnce(&Grant) -> bool) -> Result<Arc<dyn Seat>, Error> {
        let grant = self.case.grant();
        let Some(seat) = &self.case.role.seat else {
            self.case.not_in_role(what);
            return Err(Error::NotGranted);
        };
        if grant.ui().is_none() || !may(&grant) {
            self.case.ledger.refused(grant.deny(Capability::Ui, what));
            return Err(Error::NotGranted);
        }
        Ok(Arc::clone(seat))
    }

    fn count_command(&mut self) -> Result<(), Error> {
        if self.uses.commands.take() {
            return Ok(());
        }
        let limit = self.uses.commands.limit("answers and ends of turns");
        self.case.ledger.limit_reached(limit.clone());
        Err(Error::Full(format!("the limit of {limit} is reached")))
    }
}

fn refused(error: SeatError) -> Error {
    match error {
        SeatError::Invalid(text) => Error::Invalid(text),
        SeatError::NoSuchQuestion => Error::NoSuchQuestion,
        SeatError::Full | SeatError::Ended => Error::Full(error.to_string()),
    }
}
