#compdef sallyport
# Completions of sallyport for Zsh. Save them in a folder of $fpath as _sallyport, or add to
# ~/.zshrc, after compinit:
#     source <(sallyport completions zsh)

_sallyport() {
    local -a lines
    lines=("${(@f)$("${~words[1]}" __complete zsh $((CURRENT - 1)) -- "${words[@]}" 2>/dev/null)}")
    if [[ ${lines[1]} == :paths ]]; then
        _files
    elif [[ -n ${lines[1]} ]]; then
        _describe -V sallyport lines
    fi
}

if [[ ${funcstack[1]} == _sallyport ]]; then
    _sallyport "$@"
else
    compdef _sallyport sallyport
fi
