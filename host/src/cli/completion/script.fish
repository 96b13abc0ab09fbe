# Completions of sallyport for fish. To load them in each shell, save them as
# ~/.config/fish/completions/sallyport.fish:
#     sallyport completions fish > ~/.config/fish/completions/sallyport.fish

function __sallyport_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l index (count $words)
    set -a words (commandline --current-token --cut-at-cursor)
    set -l lines (sallyport __complete fish $index -- $words 2>/dev/null)
    if test "$lines[1]" = :paths
        __fish_complete_path (commandline --current-token --cut-at-cursor)
    else
        printf '%s\n' $lines
    end
end

complete --command sallyport --no-files --keep-order --arguments '(__sallyport_complete)'
