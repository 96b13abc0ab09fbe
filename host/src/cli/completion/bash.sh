# Completions of sallyport for Bash. To load them in each shell, add to ~/.bashrc:
#     source <(sallyport completions bash)

_sallyport() {
    local program line
    program=$(type -P -- "${1/#\~/$HOME}") || program=sallyport
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("$program" __complete bash "$COMP_CWORD" -- "${COMP_WORDS[@]}" 2>/dev/null)
    if [[ ${COMPREPLY[0]-} == :paths ]]; then
        COMPREPLY=()
        compopt -o default 2>/dev/null
    fi
}

# Without nosort, which older versions lack, Bash sorts the words.
complete -o nosort -F _sallyport sallyport 2>/dev/null || complete -F _sallyport sallyport
