# Types "tandem subm<TAB> --fol<TAB>" into a zsh with the completion functions of the folder $1, and waits for "submit --follow".
# $2: the folder of `tandem`.
zmodload zsh/zpty
zpty terminal env "PATH=$2:$PATH" TERM=dumb zsh -f -i
zpty -w terminal "PS1='> '; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy"
zpty -r -m terminal out '*ready*> *'
zpty -n -w terminal $'tandem subm\t --fol\t'
zpty -r -m terminal out '*tandem submit --follow*'
