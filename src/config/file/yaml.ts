import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import type { KeyPath } from '../fault/fault.ts';

/** A YAML text that was understood, with the line on which each of its values is written. */
export interface YamlText {
  readonly value: unknown;
  readonly lineOf: (path: KeyPath) => number;
}

/** What YAML itself objects to; the text is made of the parser's code, never of the source. */
export interface YamlFault {
  readonly line: number;
  readonly text: string;
}

/** What stands in a text where its bytes were not UTF-8. */
const replacementCharacter = '\u{FFFD}';

/**
 * Reads YAML (and so JSON) in which only `true`, `false` and `null` are special.
 *
 * Numbers stay the text that was written, so that a secret `0012`, a mode `0660` or a product key
 * `1e5` is not changed; the keys that want a number read it from the text. Aliases are refused: a
 * file this small does not need them, and they can refer to themselves.
 */
export function parseYaml(text: string): YamlText | readonly YamlFault[] {
  const lines = new LineCounter();
  const lineAt = (offset: number): number => lines.linePos(offset).line;
  const document = parseDocument(text, {
    schema: 'failsafe',
    customTags: ['null', 'bool'],
    stringKeys: true,
    prettyErrors: false,
    lineCounter: lines,
  });
  const undecoded = text.indexOf(replacementCharacter);
  if (undecoded !== -1) return [{ line: lineAt(undecoded), text: 'is not UTF-8 text' }];
  const faults = [...document.errors, ...document.warnings].map((fault) => ({
    line: lineAt(fault.pos[0]),
    text: `is not valid YAML: ${fault.code.toLowerCase().replaceAll('_', ' ')}`,
  }));
  visit(document, {
    Alias: (_, alias) => {
      faults.push({
        line: lineAt(offsetOf(alias)),
        text: 'has an alias: put quotes around text that begins with *',
      });
    },
  });
  return faults.length > 0
    ? faults
    : { value: document.toJS(), lineOf: (path) => lineAt(findOffset(document, path)) };
}

/** Finds where a path's last step is written: a mapping's key or a list's item. */
function findOffset(document: Document, path: KeyPath): number {
  let node: unknown = document.contents;
  let offset = offsetOf(node);
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      offset = offsetOf(pair?.key, offset);
      node = pair?.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      offset = offsetOf(node, offset);
    }
  }
  return offset;
}

function offsetOf(node: unknown, otherwise = 0): number {
  return isNode(node) ? (node.range?.[0] ?? otherwise) : otherwise;
}
