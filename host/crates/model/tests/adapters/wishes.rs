//! The parts of a request other than its conversation, and quoted origins, in every protocol.

use sallyport_contract::services::InputOrigin;
use sallyport_model::{ModelRequest, UserInputMessage, connect_model as connect_whole};

use super::*;

const ALL: [ProviderProtocol; 5] = [
    ProviderProtocol::OpenAiChat,
    ProviderProtocol::OpenAiResponses,
    ProviderProtocol::Anthropic,
    ProviderProtocol::Gemini,
    ProviderProtocol::Ollama,
];

/// The JSON pointer to the temperature in a protocol.
fn place(protocol: ProviderProtocol) -> &'static str {
    match protocol {
        ProviderProtocol::Gemini => "/generationConfig/temperature",
        ProviderProtocol::Ollama => "/options/temperature",
        _ => "/temperature",
    }
}

/// Returns the bodies that are sent if a request wishes for a temperature and each is refused with
/// this message.
async fn wished(
    protocol: ProviderProtocol,
    own: Option<f64>,
    wish: Option<f64>,
    refusal: &str,
) -> Vec<Value> {
    let server = Server::start(plain(400, "", refusal)).await;
    let endpoint = ModelEndpoint { temperature: own, ..settings(protocol, &server, true) };
    let messages = asking::hello();
    let request =
        ModelRequest { messages: &messages, temperature: wish, ..ModelRequest::default() };
    connect_whole(endpoint).unwrap().generate(request, &mut |_| {}).await.unwrap_err();
    server.seen().into_iter().map(|seen| seen.body).collect()
}

#[tokio::test]
async fn a_request_wishes_for_a_temperature_in_place_of_the_endpoints() {
    let rows = [
        (None, None, None),
        (Some(0.5), None, Some(0.5)),
        (None, Some(0.7), Some(0.7)),
        (Some(0.5), Some(0.0), Some(0.0)),
        (Some(0.5), Some(f64::NAN), Some(0.5)),
        (Some(0.5), Some(-1.0), Some(0.5)),
    ];
    for protocol in ALL {
        for (own, wish, want) in rows {
            let bodies = wished(protocol, own, wish, "no").await;
            let sent = bodies[0].pointer(place(protocol)).and_then(Value::as_f64);
            assert_eq!((sent, bodies.len()), (want, 1), "{protocol:?} {own:?} {wish:?}");
        }
    }
}

#[tokio::test]
async fn a_wish_that_is_refused_is_given_up_and_a_setting_is_not() {
    let refusal = r#"{"error":{"message":"Unsupported value: 'temperature'"}}"#;
    let rows = [
        (None, Some(0.7), vec![Some(0.7), None]),
        (Some(0.5), Some(0.7), vec![Some(0.7), Some(0.5)]),
        (Some(0.5), None, vec![Some(0.5)]),
    ];
    for protocol in ALL {
        for (own, wish, want) in &rows {
            let bodies = wished(protocol, *own, *wish, refusal).await;
            let sent = bodies.iter().map(|body| body.pointer(place(protocol)));
            let sent: Vec<Option<f64>> = sent.map(|sent| sent.and_then(Value::as_f64)).collect();
            assert_eq!(sent, *want, "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn a_model_is_told_whose_words_it_reads() {
    let origin = InputOrigin {
        plugin: "webhook".parse().unwrap(),
        label: Some("bot".into()),
        connection: None,
    };
    let told = "[A note.]\n\n[from webhook, \"bot\"]\n| build failed";
    for attachments in [Vec::new(), vec![file("a.txt", "text/plain", b"words")]] {
        let said = UserInputMessage {
            text: "build failed".to_owned(),
            attachments,
            origin: Some(origin.clone()),
            aside: Some("[A note.]".to_owned()),
        };
        let messages = [ChatMessage::User(said)];
        let told = serde_json::to_string(told).unwrap();
        for protocol in ALL {
            let (_, body) = sent(protocol, |endpoint| endpoint, &messages, &[]).await;
            let body = body.to_string();
            assert!(body.contains(told.trim_matches('"')), "{protocol:?}: {body}");
        }
    }
}
