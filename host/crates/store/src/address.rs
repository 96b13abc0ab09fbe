//! The address of a database on a server.

use std::fmt;

use sallyport_contract::Secret;

use crate::error::StoreError;

/// The schemes of an address.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The address of a PostgreSQL database, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. It is shown
/// without its password and its parameters.
#[derive(Clone)]
pub struct DatabaseAddress {
    secret: Secret,
    shown: String,
}

impl DatabaseAddress {
    /// Takes an address. Only its scheme is checked here.
    ///
    /// # Errors
    ///
    /// The text is not the address of a PostgreSQL database.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let text = text.trim();
        let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let why = "it is not the address of a PostgreSQL database".to_owned();
        let rest = rest.ok_or(StoreError::InvalidAddress { why })?;
        // A password may have any sign, also those that should be escaped in an address.
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (user.split([':', '/', '?']).next(), place),
            None => (None, rest),
        };
        let place = place.split('?').next().unwrap_or_default();
        let at = user.map_or(String::new(), |user| format!("{user}@"));
        let shown = format!("postgres://{at}{place}");
        Ok(Self { secret: Secret::new(text.to_owned()), shown })
    }

    /// The whole address, with its password.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The password in the address, as it is written there.
    pub fn password(&self) -> Option<Secret> {
        let (user, _) = self.secret.expose().rsplit_once('@')?;
        let (_, user) = user.split_once("://")?;
        let (_, password) = user.split_once(':')?;
        (!password.is_empty()).then(|| Secret::new(password.to_owned()))
    }

    /// The address without its password and its parameters.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatabaseAddress").field(&self.shown).finish()
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let check = |text: &str, want: Option<&str>| {
            let address = DatabaseAddress::parse(text);
            assert_eq!(address.as_ref().ok().map(|address| address.shown()), want, "{text}");
            assert!(!format!("{address:?}").contains("geheim"), "{address:?}");
        };
        check(
            "postgres://ann:geheim@db.example:5433/sp",
            Some("postgres://ann@db.example:5433/sp"),
        );
        check("postgresql://ann:ge@heim@db/sp", Some("postgres://ann@db/sp"));
        check("postgres://db/sp?password=geheim&user=ann", Some("postgres://db/sp"));
        check("postgres://ann:geheim?/@db/sp", Some("postgres://ann@db/sp"));
        check("postgres://ann@db/sp", Some("postgres://ann@db/sp"));
        check(" postgres:///sp\n", Some("postgres:///sp"));
        check("host=db password=geheim", None);
        check("mysql://ann:geheim@db/sp", None);
        check("", None);
    }
}
