package httpclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sallyport/internal/contract"
	wit "sallyport/internal/runtime/types"
	handler "sallyport/internal/wit/wasi_http_outgoing_handler"
	types "sallyport/internal/wit/wasi_http_types"
	streams "sallyport/internal/wit/wasi_io_streams"
)

// pieceMax is the longest piece of a body that one write to the host may have.
const pieceMax = 4096

type hostTransport struct{}

func transport() http.RoundTripper { return hostTransport{} }

// RoundTrip sends one request. It waits without letting other goroutines run.
func (hostTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	defer closeBody(request)
	outgoing, err := outgoingRequest(request)
	if err != nil {
		return nil, err
	}
	body := outgoing.Body()
	if body.IsErr() {
		return nil, errors.New("the request has no body")
	}
	sent := handler.Handle(outgoing, wit.Some(options(request)))
	if sent.IsErr() {
		body.Ok().Drop()
		return nil, toError(sent.Err())
	}
	if err := writeBody(body.Ok(), request.Body); err != nil {
		return nil, err
	}
	incoming, err := await(sent.Ok())
	if err != nil {
		return nil, err
	}
	return response(request, incoming)
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		request.Body.Close()
	}
}

func outgoingRequest(request *http.Request) (*types.OutgoingRequest, error) {
	fields := types.MakeFields()
	for name, values := range request.Header {
		for _, value := range values {
			if fields.Append(name, []byte(value)).IsErr() {
				fields.Drop()
				return nil, fmt.Errorf("the header %s is not allowed", name)
			}
		}
	}
	outgoing := types.MakeOutgoingRequest(fields)
	scheme := types.MakeSchemeHttps()
	if request.URL.Scheme == "http" {
		scheme = types.MakeSchemeHttp()
	}
	host := request.URL.Host
	if outgoing.SetMethod(method(request.Method)).IsErr() || outgoing.SetScheme(wit.Some(scheme)).IsErr() ||
		outgoing.SetAuthority(wit.Some(host)).IsErr() ||
		outgoing.SetPathWithQuery(wit.Some(request.URL.RequestURI())).IsErr() {
		outgoing.Drop()
		return nil, errors.New("the method or the address of the request is not valid")
	}
	return outgoing, nil
}

func method(name string) types.Method {
	makers := map[string]func() types.Method{
		"": types.MakeMethodGet, "GET": types.MakeMethodGet, "HEAD": types.MakeMethodHead,
		"POST": types.MakeMethodPost, "PUT": types.MakeMethodPut, "DELETE": types.MakeMethodDelete,
		"OPTIONS": types.MakeMethodOptions, "PATCH": types.MakeMethodPatch,
	}
	if make, isKnown := makers[name]; isKnown {
		return make()
	}
	return types.MakeMethodOther(name)
}

// options passes the deadline of the request's context on.
func options(request *http.Request) *types.RequestOptions {
	made := types.MakeRequestOptions()
	if deadline, isSet := request.Context().Deadline(); isSet {
		wait := wit.Some(uint64(max(time.Until(deadline), time.Millisecond)))
		made.SetConnectTimeout(wait)
		made.SetFirstByteTimeout(wait)
		made.SetBetweenBytesTimeout(wait)
	}
	return made
}

// writeBody writes the body in the pieces that the host takes. A server may answer before it has
// read the body, so a body that the host no longer takes is no failure: the response decides.
func writeBody(to *types.OutgoingBody, body io.Reader) error {
	if body == nil || body == http.NoBody {
		types.OutgoingBodyFinish(to, wit.None[*types.Fields]())
		return nil
	}
	opened := to.Write()
	if opened.IsErr() {
		to.Drop()
		return errors.New("the body of the request cannot be written")
	}
	isTaken, err := copyBody(opened.Ok(), body)
	opened.Ok().Drop()
	if isTaken {
		types.OutgoingBodyFinish(to, wit.None[*types.Fields]())
	} else {
		to.Drop()
	}
	return err
}

func copyBody(to *streams.OutputStream, body io.Reader) (isTaken bool, err error) {
	piece := make([]byte, pieceMax)
	for {
		length, err := body.Read(piece)
		if length > 0 && to.BlockingWriteAndFlush(piece[:length]).IsErr() {
			return false, nil
		}
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

func await(future *types.FutureIncomingResponse) (*types.IncomingResponse, error) {
	defer future.Drop()
	ready := future.Subscribe()
	ready.Block()
	ready.Drop()
	got := future.Get()
	if got.IsNone() || got.Some().IsErr() {
		return nil, errors.New("there is no response")
	}
	result := got.Some().Ok()
	if result.IsErr() {
		return nil, toError(result.Err())
	}
	return result.Ok(), nil
}

func response(request *http.Request, incoming *types.IncomingResponse) (*http.Response, error) {
	header := http.Header{}
	fields := incoming.Headers()
	for _, entry := range fields.Entries() {
		header.Add(entry.F0, string(entry.F1))
	}
	fields.Drop()
	status := int(incoming.Status())
	consumed := incoming.Consume()
	incoming.Drop()
	if consumed.IsErr() {
		return nil, errors.New("the response has no body")
	}
	opened := consumed.Ok().Stream()
	if opened.IsErr() {
		consumed.Ok().Drop()
		return nil, errors.New("the response has no body")
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          &responseBody{body: consumed.Ok(), stream: opened.Ok()},
		ContentLength: -1,
		Request:       request,
	}, nil
}

// A responseBody reads the body of a response. It owns the host's handles until it is closed.
type responseBody struct {
	body   *types.IncomingBody
	stream *streams.InputStream
	rest   []byte
	end    error
}

func (b *responseBody) Read(to []byte) (int, error) {
	for len(b.rest) == 0 && b.end == nil {
		b.fill(len(to))
	}
	if len(b.rest) == 0 {
		return 0, b.end
	}
	length := copy(to, b.rest)
	b.rest = b.rest[length:]
	return length, nil
}

func (b *responseBody) fill(wanted int) {
	if b.stream == nil {
		b.end = http.ErrBodyReadAfterClose
		return
	}
	read := b.stream.BlockingRead(uint64(max(wanted, pieceMax)))
	switch {
	case read.IsOk():
		b.rest = read.Ok()
	case read.Err().Tag() == streams.StreamErrorClosed:
		b.end = io.EOF
	default:
		b.end = errors.New("the response broke off")
	}
}

func (b *responseBody) Close() error {
	if b.stream != nil {
		b.stream.Drop()
		b.body.Drop()
		b.stream, b.rest, b.end = nil, nil, http.ErrBodyReadAfterClose
	}
	return nil
}

func toError(code types.ErrorCode) error {
	switch code.Tag() {
	case types.ErrorCodeHttpRequestDenied:
		return contract.Errorf(contract.Denied, "the request is not granted")
	case types.ErrorCodeDestinationIpProhibited:
		return contract.Errorf(contract.Denied, "the address of the server is not granted")
	case types.ErrorCodeDnsTimeout, types.ErrorCodeDnsError, types.ErrorCodeDestinationNotFound:
		return contract.Errorf(contract.Unavailable, "the host name was not found")
	case types.ErrorCodeConnectionRefused, types.ErrorCodeDestinationUnavailable:
		return contract.Errorf(contract.Unavailable, "the server refused the connection")
	case types.ErrorCodeConnectionTimeout, types.ErrorCodeConnectionReadTimeout, types.ErrorCodeHttpResponseTimeout:
		return contract.Errorf(contract.Unavailable, "the server did not answer in time")
	case types.ErrorCodeInternalError:
		return contract.Errorf(contract.Unavailable, "the request failed: %s", code.InternalError().SomeOr("no reason given"))
	}
	return contract.Errorf(contract.Unavailable, "the request failed (wasi:http error %d)", code.Tag())
}
