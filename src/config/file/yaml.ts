import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import type { KeyPath } from '../errors.ts';

export interface YamlText {
  readonly value: unknown;
  readonly lineOf: (path: KeyPath) => number;
}

/** An error of the YAML parser; its text contains the code of the error, and nothing from the file. */
export interface YamlError {
  readonly line: number;
  readonly text: string;
}

/** What is usually wrong, in place of the words of the parser. */
const hints: Readonly<Record<string, string>> = {
  MULTILINE_IMPLICIT_KEY: 'is a colon missing after a key, or the blank after the colon?',
  BLOCK_AS_IMPLICIT_KEY: 'two colons are on one line: put quotes around the value',
  TAB_AS_INDENT: 'a line is indented with a tab: use blanks',
  BAD_INDENT: 'the indentation does not fit, or a bracket is not closed',
  MISSING_CHAR: 'a colon, a quote or a bracket is missing',
};

/** Node decodes bytes that are not UTF-8 as this character. */
const replacementCharacter = '\u{FFFD}';

/**
 * Reads YAML (and so JSON) in which only `true`, `false` and `null` are special.
 *
 * Numbers stay text, so that a secret `0012`, a mode `0660` or a product key `1e5` is not changed; numeric
 * settings parse the text. Aliases are refused: a file this small does not need them, and they can refer to
 * themselves.
 */
export function parseYaml(text: string): YamlText | readonly YamlError[] {
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
  // The others usually follow from the first one.
  const errors = [...document.errors, ...document.warnings].slice(0, 1).map((error) => ({
    line: lineAt(error.pos[0]),
    text: `is not valid YAML: ${hints[error.code] ?? error.code.toLowerCase().replaceAll('_', ' ')}`,
  }));
  visit(document, {
    Alias: (_, alias) => {
      errors.push({
        line: lineAt(offsetOf(alias)),
        text: 'has an alias: put quotes around text that begins with *',
      });
    },
  });
  return errors.length > 0
    ? errors
    : { value: document.toJS(), lineOf: (path) => lineAt(findOffset(document, path)) };
}

/** Finds the offset of the last step of a path: the key of a mapping or the item of a list. */
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
