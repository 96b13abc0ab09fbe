//! Answers of embedding servers, valid and invalid.

use super::*;

#[tokio::test]
async fn vectors_that_cannot_be_computed_with_are_refused() {
    let long = json!(vec![0.5; 8193]);
    let rows = [
        (json!([json!([1.0]), json!([1.0, 2.0])]), "a vector has 2 numbers, others have 1"),
        (json!([json!([]), json!([])]), "a vector has 0 numbers, 1 to 8192 are accepted"),
        (json!([long, long]), "a vector has 8193 numbers, 1 to 8192 are accepted"),
        (json!([json!([1.0]), json!(["1"])]), "something else than finite numbers"),
        (json!([json!([1.0]), json!([null])]), "something else than finite numbers"),
        (json!([json!([1.0]), json!([1e39])]), "something else than finite numbers"),
        (json!([json!([1.0]), Value::Null]), "a vector is not a list of numbers"),
        (json!([json!([1.0]), json!("AAAA")]), "a vector is not a list of numbers"),
        (json!([json!([1.0])]), "it has 1 vectors for 2 texts"),
        (json!([[1.0], [1.0], [1.0]]), "it has 3 vectors for 2 texts"),
    ];
    for protocol in PROTOCOLS {
        for (vectors, want) in &rows {
            let body = answer(protocol, vectors.as_array().unwrap());
            let error = play(protocol, &body).await.unwrap_err();
            assert!(matches!(error, ModelError::Broken { .. }), "{error}");
            assert!(error.to_string().contains(want), "{protocol:?}: {error}");
        }
    }
}

#[tokio::test]
async fn an_answer_without_vectors_is_refused() {
    for protocol in PROTOCOLS {
        for body in [json!({}), json!([]), json!({ "data": 1, "embeddings": "x" }), json!(null)] {
            let error = play(protocol, &body).await.unwrap_err();
            assert!(error.to_string().contains("there are no vectors in it"), "{error}");
        }
        let error = play(protocol, &json!({ "error": "no memory left" })).await.unwrap_err();
        assert!(error.to_string().contains("no memory left"), "{error}");
    }
}

#[tokio::test]
async fn vectors_are_put_in_the_order_of_their_texts() {
    let one = |index: Value, number: u8| json!({ "index": index, "embedding": [number] });
    let rows = [
        (vec![one(json!(1), 7), one(json!(0), 8)], Ok([[8.0], [7.0]])),
        (vec![one(Value::Null, 7), one(Value::Null, 8)], Ok([[7.0], [8.0]])),
        (vec![one(json!(0), 7), one(json!(0), 8)], Err("numbered wrongly")),
        (vec![one(json!(0), 7), one(json!(2), 8)], Err("numbered wrongly")),
        (vec![one(json!(0), 7), one(json!(u64::MAX), 8)], Err("numbered wrongly")),
    ];
    for (data, want) in rows {
        let got = play(ProviderProtocol::OpenAiChat, &json!({ "data": data })).await;
        match want {
            Ok(vectors) => assert_eq!(got.unwrap(), vectors),
            Err(part) => assert!(got.unwrap_err().to_string().contains(part)),
        }
    }
}

#[tokio::test]
async fn a_server_that_changes_its_model_in_between_is_noticed() {
    let server = Server::directed(|seen| {
        let count = seen.body["input"].as_array().unwrap().len();
        let vectors: Vec<Value> = (0..count).map(|_| json!(vec![1.0; count])).collect();
        sends(&answer(ProviderProtocol::OpenAiChat, &vectors))
    })
    .await;
    let embedder = embedder(ProviderProtocol::OpenAiChat, &server);
    assert_eq!(embedder.embed(&texts(2)).await.unwrap().len(), 2);
    let error = embedder.embed(&texts(3)).await.unwrap_err();
    assert!(error.to_string().contains("a vector has 3 numbers, others have 2"), "{error}");
    assert_eq!(embedder.embed(&texts(2)).await.unwrap().len(), 2);
}
