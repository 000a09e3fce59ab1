import { errorCodeOf, exitCode } from './exit-code.ts';
import { type Output, type Refusal, toSafeJson } from './output.ts';

/** Makes an output for programs: `finish` writes all that was complained of as one JSON value. */
export function createJsonOutput(output: Output): Output & { readonly finish: (code: number) => void } {
  const complaints: string[] = [];
  let refused: Refusal | undefined;
  return {
    ...output,
    complain(lines, refusal) {
      refused = refusal ?? refused;
      complaints.push(lines.map((line) => line.replace(/^latchkey: /, '')).join('\n'));
    },
    finish(code) {
      if (complaints.length === 0) return;
      const said =
        code === exitCode.done ? { warnings: complaints } : { error: errorOf(code, complaints, refused) };
      output.complain([toSafeJson(said)]);
    },
  };
}

function errorOf(code: number, complaints: readonly string[], refused: Refusal | undefined): object {
  return {
    code: refused?.code ?? errorCodeOf(code),
    detail: refused?.detail ?? complaints.join('\n'),
    exit_code: code,
    ...(refused !== undefined && { answer: refused.body }),
  };
}
