import { type Command, defineCommand } from '../../cli/command.ts';

type Shell = 'bash' | 'zsh' | 'fish' | 'powershell';

/** Declares a command that prints a shell's script. The script asks `completion next` for the completions. */
export function defineShell(shell: Shell): Command {
  const { script, example, meaning } = scripts[shell];
  return defineCommand({
    command: shell,
    describe: `Print the script for ${shell}`,
    builder: {},
    examples: [[example, meaning]],
    handler: async (_args, output) => await output.result({ shell, script }, script),
  });
}

/** bash splits words at `=` and `:`. Versions before 4 have no compopt, and complete files everywhere. */
const bash = `
_latchkey() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words=() kind word meaning index
  for ((index = 1; index <= COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ $word == '=' && \${#words[@]} -gt 0 ]]; then
      words[\${#words[@]}-1]+='='
    elif [[ \${#words[@]} -gt 0 && \${words[\${#words[@]}-1]} == --*= ]]; then
      words[\${#words[@]}-1]+="$word"
    else
      words+=("$word")
    fi
  done
  [[ $current == '=' ]] && current=''
  COMPREPLY=()
  {
    IFS= read -r kind
    case "$kind" in
      file) compopt -o filenames -o default 2>/dev/null ;;
      folder) compopt +o default -o filenames -o dirnames 2>/dev/null ;;
      *)
        compopt +o default 2>/dev/null
        while IFS= read -r word && IFS= read -r meaning; do
          [[ $word == "$current"* ]] && COMPREPLY+=("$(printf '%q' "$word")")
        done
        ;;
    esac
  } < <(command latchkey completion next --quoted -- "\${words[@]}" 2>/dev/null)
}
complete -o default -F _latchkey latchkey
`;

const zsh = `#compdef latchkey
_latchkey() {
  local kind word meaning
  local -a given items
  given=("\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}")
  {
    IFS= read -r kind
    while IFS= read -r word && IFS= read -r meaning; do
      items+=("\${word//:/\\\\:}:$meaning")
    done
  } < <(command latchkey completion next -- "\${given[@]}" 2>/dev/null)
  compset -P '--*='
  case "$kind" in
    file) _files ;;
    folder) _files -/ ;;
    *) _describe latchkey items ;;
  esac
}
if [ "\${funcstack[1]}" = _latchkey ]; then
  _latchkey "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _latchkey latchkey
fi
`;

const fish = `
function __latchkey_next
    set -l current (commandline -ct)
    set -l given (commandline -opc)[2..-1] $current
    set -l before (string match -r -- '^--[\\w-]+=' $current; or echo '')
    set -l rest (string sub -s (math (string length -- "$before") + 1) -- $current)
    set -l lines (command latchkey completion next -- $given 2>/dev/null)
    switch "$lines[1]"
        case file
            # fish quotes a path with blanks, but its helper takes it unquoted.
            for path in (__fish_complete_path (string unescape -- $rest; or echo $rest))
                printf '%s%s\\n' $before $path
            end
        case folder
            for path in (__fish_complete_directories $rest)
                printf '%s%s\\n' $before $path
            end
        case '*'
            set -l index 2
            while test $index -lt (count $lines)
                printf '%s%s\\t%s\\n' $before $lines[$index] $lines[(math $index + 1)]
                set index (math $index + 2)
            end
    end
end
complete -c latchkey -f -a '(__latchkey_next)'
`;

/**
 * PowerShell completes files and folders itself if nothing is returned. Windows PowerShell drops empty arguments, and a
 * script such as npm's latchkey.ps1 would not get a literal `--`.
 */
const powershell = String.raw`
Register-ArgumentCompleter -Native -CommandName latchkey -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @()
    $current = ''
    foreach ($element in $commandAst.CommandElements | Select-Object -Skip 1) {
        $extent = $element.Extent
        if ($extent.StartOffset -ge $cursorPosition) { break }
        if ($extent.EndOffset -ge $cursorPosition) {
            $current = $extent.Text.Substring(0, $cursorPosition - $extent.StartOffset).Trim([char[]]"'""")
        } elseif ($element -is [System.Management.Automation.Language.StringConstantExpressionAst]) {
            $words += $element.Value
        } else {
            $words += $extent.Text.Trim([char[]]"'""")
        }
    }
    $arguments = @('completion', 'next')
    if ($current -eq '') { $arguments += '--blank' } else { $words += $current }
    $arguments += @('--') + $words
    $lines = @(& latchkey @arguments 2>$null)
    if ($lines.Count -eq 0 -or $lines[0] -ne 'words') { return }
    $before = if ($current -match '^--[\w-]+=') { $Matches[0] } else { '' }
    $rest = $current.Substring($before.Length)
    $found = for ($index = 1; $index + 1 -lt $lines.Count; $index += 2) {
        $word = $lines[$index]
        if (-not $word.StartsWith($rest, [StringComparison]::OrdinalIgnoreCase)) { continue }
        $meaning = if ($lines[$index + 1] -eq '') { $word } else { $lines[$index + 1] }
        $text = $before + $word
        if ($text -match '[^\w./:=+-]') { $text = "'" + $text.Replace("'", "''") + "'" }
        [System.Management.Automation.CompletionResult]::new($text, $word, 'ParameterValue', $meaning)
    }
    # An empty string, so that PowerShell offers no files.
    if ($null -eq $found) { '' } else { $found }
}
`;

const scripts: Readonly<Record<Shell, { script: string; example: string; meaning: string }>> = {
  bash: {
    script: bash.trim(),
    example: 'source <(latchkey completion bash)',
    meaning: 'for this shell; put it into ~/.bashrc',
  },
  zsh: {
    script: zsh.trim(),
    example: 'source <(latchkey completion zsh)',
    meaning: 'for this shell; put it into ~/.zshrc',
  },
  fish: {
    script: fish.trim(),
    example: 'latchkey completion fish | source',
    meaning: 'for this shell; put it into ~/.config/fish/config.fish',
  },
  powershell: {
    script: powershell.trim(),
    example: 'latchkey completion powershell | Out-String | Invoke-Expression',
    meaning: 'for this shell; put it into the file $PROFILE',
  },
};
