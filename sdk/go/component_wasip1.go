package sallyport

// The exports of the component.
import _ "sallyport/internal/wit/wit_exports"
