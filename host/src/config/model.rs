//! Which model is talked to.

use sallyport_contract::Secret;

use super::{
    ConfigError, Env, FileConfig, Flags, env,
    file::{ModelEntry, Provider},
};

/// Where an OpenAI-compatible endpoint is when nothing says otherwise.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The name of the built-in matcher.
const OFFLINE: &str = "offline";

/// The model to talk to.
#[derive(Debug)]
pub enum ModelChoice {
    /// The built-in matcher.
    Offline {
        /// True when it was asked for by name, so that nobody has to be told.
        on_purpose: bool,
    },
    /// An OpenAI-compatible endpoint.
    OpenAi {
        /// The model's name at the provider.
        model: String,
        /// Address of the endpoint.
        base_url: String,
        /// The key, if there is one.
        key: Option<Secret>,
        /// Whether answers are streamed.
        stream: bool,
    },
}

/// Chooses the model: the flag, then the environment, then the file, then `offline`.
pub(super) fn choose(
    flags: &Flags,
    env: &Env,
    file: &FileConfig,
) -> Result<ModelChoice, ConfigError> {
    let named = flags.model.as_deref().or_else(|| env.get(env::MODEL));
    let Some(name) = named.or(file.default_model.as_deref()) else {
        return Ok(ModelChoice::Offline { on_purpose: false });
    };
    let stream = !flags.no_stream;
    match file.models.get(name) {
        Some(entry) => from_entry(name, entry, env, stream),
        None if name == OFFLINE => Ok(ModelChoice::Offline { on_purpose: true }),
        None if named.is_none() => {
            let known: Vec<&str> = file.models.keys().map(String::as_str).collect();
            Err(ConfigError::Model(format!(
                "default_model is {name:?}, but there is no [model.{name}]; known are: {OFFLINE} {}",
                known.join(" ")
            )))
        }
        // Any other name is a model of the endpoint that the environment names.
        None => Ok(ModelChoice::OpenAi {
            model: name.to_owned(),
            base_url: env.get(env::OPENAI_BASE_URL).unwrap_or(OPENAI_BASE_URL).to_owned(),
            key: env.get(env::OPENAI_API_KEY).map(Secret::new),
            stream,
        }),
    }
}

fn from_entry(
    name: &str,
    entry: &ModelEntry,
    env: &Env,
    stream: bool,
) -> Result<ModelChoice, ConfigError> {
    if entry.provider == Provider::Offline {
        return Ok(ModelChoice::Offline { on_purpose: true });
    }
    let model = entry.model.clone().ok_or_else(|| {
        ConfigError::Model(format!("[model.{name}] does not say which model; add model = \"…\""))
    })?;
    // The key of the environment belongs to the endpoint of the environment: it is not sent to an
    // address that the file names.
    let own_address = entry.base_url.is_none();
    let key = entry.key.as_deref().or_else(|| env.get(env::OPENAI_API_KEY).filter(|_| own_address));
    let base_url = entry.base_url.as_deref().or_else(|| env.get(env::OPENAI_BASE_URL));
    Ok(ModelChoice::OpenAi {
        model,
        base_url: base_url.unwrap_or(OPENAI_BASE_URL).to_owned(),
        key: key.map(Secret::new),
        stream: stream && entry.stream,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(flag: Option<&str>, pairs: &[(&str, &str)], file: &str) -> Result<String, String> {
        let env = Env::of(pairs.iter().copied());
        let file = FileConfig::parse("c.toml", file, &env).unwrap();
        let flags = Flags { model: flag.map(str::to_owned), ..Flags::default() };
        match choose(&flags, &env, &file).map_err(|error| error.to_string())? {
            ModelChoice::Offline { on_purpose } => Ok(format!("offline {on_purpose}")),
            ModelChoice::OpenAi { model, base_url, key, stream } => {
                Ok(format!("{model} {base_url} key={} stream={stream}", key.is_some()))
            }
        }
    }

    #[test]
    fn the_nearest_source_decides() {
        let file = "default_model = 'a'\n[model.a]\nprovider = 'openai'\nmodel = 'm'\n\
                    base_url = 'http://x/v1'\nstream = false";
        let key = [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://y/v1")];
        type Row<'a> = (Option<&'a str>, &'a [(&'a str, &'a str)], &'a str, &'a str);
        let rows: [Row<'_>; 6] = [
            (None, &[], "", "offline false"),
            (Some("offline"), &[], file, "offline true"),
            (None, &key, file, "m http://x/v1 key=false stream=false"),
            (Some("gpt"), &key, file, "gpt http://y/v1 key=true stream=true"),
            (
                None,
                &[("SALLYPORT_MODEL", "gpt")],
                file,
                "gpt https://api.openai.com/v1 key=false stream=true",
            ),
            (None, &key, "", "offline false"),
        ];
        for (flag, pairs, file, want) in rows {
            assert_eq!(chosen(flag, pairs, file).as_deref(), Ok(want));
        }
        assert!(chosen(None, &[], "default_model = 'b'").unwrap_err().contains("[model.b]"));
    }
}
