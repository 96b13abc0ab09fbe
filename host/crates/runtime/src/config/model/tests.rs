//! Which model is chosen, from which source, and with what settings.

use sallyport_model::{EmbeddingEndpoint, ProviderProtocol, ReasoningEffort, ToolCallingMode};

use sallyport_policy::SourceError;

use super::*;
use crate::config::reader::ConfigText;

type Variables<'a> = &'a [(&'a str, &'a str)];

fn parse(text: &str, env: &Env) -> Result<FileConfig, SourceError> {
    ConfigText { name: "c.toml".to_owned(), text }.parse_and_read(env)
}

fn chosen_of(
    flags: &ConfigFlags,
    pairs: Variables<'_>,
    file: &str,
) -> Result<ChosenModel, ConfigError> {
    let env = Env::from_pairs(pairs.iter().copied());
    let file = parse(file, &env).unwrap();
    let default = file.default_model.as_deref().map(|name| (name, SettingOrigin::File));
    ModelSources::new(flags, &env, &file)?.choose_model(flags, default)
}

fn models(pairs: Variables<'_>, file: &str) -> ModelSources {
    let env = Env::from_pairs(pairs.iter().copied());
    let file = parse(file, &env).unwrap();
    ModelSources::new(&ConfigFlags::default(), &env, &file).unwrap()
}

fn chosen(flag: Option<&str>, pairs: Variables<'_>, file: &str) -> Result<String, String> {
    let flags = match flag.and_then(|flag| flag.split_once(' ')) {
        Some((provider, "")) => {
            ConfigFlags { provider: Some(provider.to_owned()), ..ConfigFlags::default() }
        }
        Some((provider, model)) => ConfigFlags {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            ..ConfigFlags::default()
        },
        None => ConfigFlags { model: flag.map(str::to_owned), ..ConfigFlags::default() },
    };
    let chosen = chosen_of(&flags, pairs, file).map_err(|error| error.to_string())?;
    Ok(match chosen.choice {
        ModelChoice::Offline { is_explicit: on_purpose } => format!("offline {on_purpose}"),
        ModelChoice::Plugin(plugin) => {
            let PluginModelConfig { plugin, model, stream, .. } = *plugin;
            format!("plugin {plugin} {} stream={stream}", model.as_deref().unwrap_or("-"))
        }
        ModelChoice::Endpoint(e) => {
            let key = e.key.as_ref().map_or("-", Secret::expose);
            format!(
                "{} {} {} key={key} stream={}",
                e.protocol.as_str(),
                e.model,
                e.base_url,
                e.stream
            )
        }
    })
}

const FILE: &str = "default_model = 'a'\n[model.a]\nprovider = 'openai'\nmodel = 'm'\n\
                    base_url = 'http://x/v1'\nstream = false";

const KEY: Variables<'_> = &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://y/v1")];

#[test]
fn the_nearest_source_decides() {
    let rows: [(Option<&str>, Variables<'_>, &str, &str); 8] = [
        (None, &[], "", "offline false"),
        (Some("offline"), &[], FILE, "offline true"),
        (None, KEY, FILE, "openai m http://x/v1 key=- stream=false"),
        (Some("gpt"), KEY, FILE, "openai gpt http://y/v1 key=k stream=true"),
        (None, KEY, "", "offline false"),
        (
            None,
            &[("SALLYPORT_MODEL", "openai/gpt")],
            FILE,
            "openai gpt https://api.openai.com/v1 key=- stream=true",
        ),
        (
            None,
            &[("OLLAMA_MODEL", "qwen3"), ("OPENAI_API_KEY", "k")],
            "",
            "ollama qwen3 http://localhost:11434 key=- stream=true",
        ),
        (None, &[("OLLAMA_MODEL", "q")], FILE, "openai m http://x/v1 key=- stream=false"),
    ];
    for (flag, pairs, file, want) in rows {
        assert_eq!(chosen(flag, pairs, file).as_deref(), Ok(want));
    }
    assert!(chosen(None, &[], "default_model = 'b'").unwrap_err().contains("[model.b]"));
}

#[test]
fn a_name_leads_to_its_provider() {
    let claude = "anthropic c https://api.anthropic.com/v1 key=a stream=true";
    let a = ("ANTHROPIC_API_KEY", "a");
    let g = ("GOOGLE_API_KEY", "g");
    let gemini = "gemini g https://generativelanguage.googleapis.com/v1beta key=g stream=true";
    let rows: [(&str, Variables<'_>, &str); 9] = [
        ("anthropic/c", &[a, g], claude),
        ("anthropic c", &[a, g], claude),
        // Any name can be a model of the server that the environment names.
        ("q", &[("OLLAMA_BASE_URL", "http://o"), a], "ollama q http://o key=- stream=true"),
        ("gemini/g", &[g], gemini),
        ("gemini/g", &[g, ("GEMINI_API_KEY", "g")], gemini),
        (
            "openrouter/openai/x",
            &[],
            "openai openai/x https://openrouter.ai/api/v1 key=- stream=true",
        ),
        ("vendor/x", KEY, "openai vendor/x http://y/v1 key=k stream=true"),
        ("openai-responses/x", KEY, "openai-responses x http://y/v1 key=k stream=true"),
        (
            "ollama ",
            &[("OLLAMA_MODEL", "q"), ("OLLAMA_BASE_URL", "http://o")],
            "ollama q http://o key=- stream=true",
        ),
    ];
    for (name, pairs, want) in rows {
        assert_eq!(chosen(Some(name), pairs, "").as_deref(), Ok(want), "{name}");
    }
    for name in ["", "  ", "anthropic/", "anthropic/ "] {
        let error = models(&[a], "").resolve_model_name(name).unwrap_err();
        assert!(error.to_string().contains("has no name"), "{name}: {error}");
    }
    for name in ["anthropic ", "claude c"] {
        assert!(chosen(Some(name), &[a], "").unwrap_err().contains("provider"), "{name}");
    }
}

#[test]
fn a_key_goes_to_no_address_of_another_source() {
    let table =
        |url: &str| format!("[model.a]\nprovider = 'mistral'\nmodel = 'm'\nbase_url = '{url}'");
    let key: Variables<'_> = &[("MISTRAL_API_KEY", "k")];
    for (url, want) in [
        ("https://evil.example/v1", "key=-"),
        ("https://api.mistral.ai.evil.example/v1", "key=-"),
        ("https://api.mistral.ai/v1/", "key=k"),
    ] {
        let found = chosen(None, key, &table(url)).unwrap();
        assert!(found.contains(want), "{found}");
    }
}

#[test]
fn a_public_server_is_known_to_want_a_key() {
    for (base_url, want) in [
        ("https://api.anthropic.com/v1", Some("ANTHROPIC_API_KEY")),
        (" https://api.openai.com/v1/ ", Some("OPENAI_API_KEY")),
        ("https://api.openai.com.evil.example/v1", None),
        ("http://localhost:11434", None),
        ("http://localhost:8000/v1", None),
    ] {
        assert_eq!(provider::key_variable_for_url(base_url), want, "{base_url}");
    }
}

#[test]
fn a_name_that_means_no_model_leads_to_nobody() {
    let key: Variables<'_> = &[("OPENAI_API_KEY", "k")];
    let public: Variables<'_> = &[("OPENAI_BASE_URL", "https://api.openai.com/v1/")];
    let table =
        "[model.quick]\nprovider = 'vllm'\nmodel = 'm'\n[model.b]\nprovider = 'vllm'\nmodel = 'm'";
    let rows: [(&str, Variables<'_>, &str, &str); 13] = [
        ("fkae", &[], "", "the providers are openai,"),
        ("fkae", key, "", "for example openai/fkae or openai-responses/fkae"),
        ("fkae", public, "", "for example openai/fkae"),
        ("gpt-5-mini", key, "", "write openai/gpt-5-mini"),
        ("claude-sonnet-4-5", key, "", "write anthropic/claude-sonnet-4-5"),
        (
            "claude-sonnet-4-5",
            &[("ANTHROPIC_API_KEY", "k")],
            "",
            "write anthropic/claude-sonnet-4-5",
        ),
        ("gemini-2.5-flash", &[], "", "write gemini/gemini-2.5-flash"),
        ("qwen3", &[], "", "write ollama/qwen3"),
        ("antropic/claude", key, "", "did you mean anthropic/claude?"),
        ("ollama", &[], "", "did you mean ollama/NAME?"),
        ("vendor/claude-x", key, "", "write anthropic/claude-x"),
        ("quik", key, table, "did you mean \"quick\"?"),
        ("ofline", &[], "", "did you mean \"offline\"?"),
    ];
    for (name, pairs, file, want) in rows {
        let error = models(pairs, file).resolve_model_name(name).unwrap_err();
        assert!(error.to_string().contains("is not the name of a model"), "{error}");
        let hint = error.hint().unwrap();
        assert!(hint.contains(want), "{name}: {hint}");
        // Names from every source end up here.
        let flags = ConfigFlags { model: Some(name.to_owned()), ..ConfigFlags::default() };
        assert_eq!(chosen_of(&flags, pairs, file).unwrap_err().hint(), Some(hint.clone()));
        let variable = [pairs, &[("SALLYPORT_MODEL", name)]].concat();
        assert_eq!(
            chosen_of(&ConfigFlags::default(), &variable, file).unwrap_err().hint(),
            Some(hint)
        );
    }
    let misspelt = format!("default_model = 'quik'\n{table}");
    let error = chosen_of(&ConfigFlags::default(), &[], &misspelt).unwrap_err();
    assert!(error.hint().unwrap().contains("did you mean \"quick\"?"), "{error}");
}

#[test]
fn every_key_of_a_model_reaches_its_endpoint() {
    let file = "[model.a]\nprovider = 'anthropic'\nmodel = 'c'\nkey = 'k'\ntemperature = 0.5\n\
                max_output_tokens = 100\nreasoning = 'high'\ntools = 'json'\ntime_max = '30s'\n\
                context_tokens = 8000\n[price.'c*']\ninput = 1\noutput = 2.5\ncached_input = 0.1";
    let found = chosen_of(&ConfigFlags::default(), &[], file).unwrap();
    assert!(found.reason.contains("only model"), "{}", found.reason);
    assert_eq!(found.context_tokens, Some(8000));
    let ModelChoice::Endpoint(endpoint) = found.choice else { panic!("offline") };
    let price = TokenPrice { input: 1.0, output: 2.5, cached_input: 0.1, cache_write: 1.0 };
    let want = ModelEndpoint {
        key: Some(Secret::new("k")),
        temperature: Some(0.5),
        output_tokens_max: Some(100),
        context_tokens: Some(8000),
        effort: Some(ReasoningEffort::High),
        tool_calling: ToolCallingMode::Json,
        time_max: Duration::from_secs(30),
        price: Some(price),
        ..ModelEndpoint::new(ProviderProtocol::Anthropic, "https://api.anthropic.com/v1", "c")
    };
    assert_eq!(*endpoint, want);
    let found = chosen_of(&ConfigFlags::default(), &[("LLM_TIMEOUT", "7")], file).unwrap();
    let ModelChoice::Endpoint(endpoint) = found.choice else { panic!("offline") };
    assert_eq!(endpoint.time_max, Duration::from_secs(7));
}

#[test]
fn a_timeout_that_is_no_number_is_named() {
    for value in ["abc", "0", "-1", "1.5", "99999999999999999999", "86401"] {
        let error = chosen(None, &[("LLM_TIMEOUT", value)], "").unwrap_err();
        assert!(error.contains("LLM_TIMEOUT") && error.contains(value), "{error}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let rows: [(Variables<'_>, &str, &str); 4] = [
        (&[], "", "--model PROVIDER/NAME"),
        (&[("ANTHROPIC_API_KEY", "a")], "", "ANTHROPIC_API_KEY is set, but no model is named"),
        (&[("OPENAI_BASE_URL", "http://x")], "", "OPENAI_BASE_URL is set"),
        (&[], "[model.a]\nprovider='vllm'\n[model.b]\nprovider='vllm'", "such as a"),
    ];
    for (pairs, file, want) in rows {
        let said = models(pairs, file).setup_advice();
        assert!(said.contains(want), "{said}");
    }
}

#[test]
fn a_plugin_can_stand_for_a_model() {
    let file = "[model.bird]\nprovider = 'plugin:parrot'\nmodel = 'grey'\nstream = false";
    for (flag, file, want) in [
        (None, file, "plugin parrot grey stream=false"),
        (Some("plugin:parrot "), file, "plugin parrot - stream=true"),
        (Some("plugin:parrot red"), "", "plugin parrot red stream=true"),
        (Some("plugin:parrot"), "", "plugin parrot - stream=true"),
        (Some("plugin:parrot/a/b"), "", "plugin parrot a/b stream=true"),
    ] {
        assert_eq!(chosen(flag, &[], file).as_deref(), Ok(want), "{flag:?}");
    }
    for no in ["plugin:", "plugin:Parrot", "plugin:../x", "plugin:parrot/"] {
        assert!(chosen(Some(no), &[], "").is_err(), "{no}");
    }
    let priced = format!("{file}\n[price.'grey']\ninput = 1\noutput = 2");
    let found = models(&[], &priced).resolve_model_name("bird").unwrap();
    let ModelChoice::Plugin(plugin) = found.choice else { panic!("no plugin") };
    assert_eq!(plugin.price.unwrap().output, 2.0);
}

#[test]
fn vectors_come_from_where_the_file_says_or_from_the_models_own_provider() {
    let of = |text: &str, pairs: Variables<'_>| {
        let env = Env::from_pairs(pairs.iter().copied());
        let file = parse(text, &env).unwrap();
        let models = ModelSources::new(&ConfigFlags::default(), &env, &file).unwrap();
        let chosen = models.choose_model(&ConfigFlags::default(), None).unwrap();
        let found = models.choose_embedder(file.embedding.as_ref(), &chosen);
        found.map_err(|error| error.to_string()).map(|found| {
            found.map_or("-".to_owned(), |EmbeddingEndpoint { base_url, model, key, .. }| {
                format!("{model} {base_url} key={}", key.as_ref().map_or("-", Secret::expose))
            })
        })
    };
    let at = |provider: &str| format!("[model.a]\nprovider = '{provider}'\nmodel = 'm'\n");
    let own = "key = 'k'\nbase_url = 'http://x/v1'\n";
    for (file, want) in [
        (at("openai") + own, "text-embedding-3-small http://x/v1 key=k"),
        (at("ollama"), "nomic-embed-text http://localhost:11434 key=-"),
        (at("anthropic"), "-"),
        (at("plugin:parrot"), "-"),
        (String::new(), "-"),
        (
            at("anthropic") + "[embedding]\nprovider = 'openai'",
            "text-embedding-3-small https://api.openai.com/v1 key=e",
        ),
        (
            at("openai") + "[embedding]\nprovider = 'vllm'\nmodel = 'e'",
            "e http://localhost:8000/v1 key=-",
        ),
    ] {
        assert_eq!(of(&file, &[("OPENAI_API_KEY", "e")]).as_deref(), Ok(want), "{file}");
    }
    assert!(of("[embedding]\nprovider = 'vllm'", &[]).unwrap_err().contains("no `model`"));
    for no in ["offline", "plugin:parrot"] {
        let file = format!("[embedding]\nprovider = '{no}'");
        assert!(parse(&file, &Env::from_pairs([])).is_err(), "{no}");
    }
}

#[test]
fn a_price_for_names_that_only_other_globs_know_is_refused() {
    for glob in ["gpt-?", "gpt-[45]", "gpt-{4,5}"] {
        let text = format!("[price.'{glob}']\ninput = 1\noutput = 2");
        let error = parse(&text, &Env::from_pairs([])).unwrap_err();
        assert!(error.to_string().contains("only * is special"), "{error}");
    }
}
