import { english, type Texts } from './english.ts';
import { german } from './german.ts';

const languages = [english, german];

/** The texts in the language that a form or a link names, or else in the language that the browser prefers. */
export function textsIn(named: unknown, acceptLanguage = ''): Texts {
  const chosen = languages.find(({ language }) => language === named);
  return chosen ?? preferred(acceptLanguage) ?? english;
}

/** Of the header `Accept-Language`, such as `de-AT,de;q=0.9,en;q=0.8`. */
function preferred(header: string): Texts | undefined {
  const ranges = header.split(',').map((range) => {
    const [tag = '', quality = 'q=1'] = range.split(';').map((part) => part.trim().toLowerCase());
    return { language: tag.slice(0, 2), quality: Number(quality.slice('q='.length)) };
  });
  const known = ranges.flatMap(({ language, quality }) =>
    quality > 0
      ? languages.filter((each) => each.language === language).map((texts) => ({ texts, quality }))
      : [],
  );
  // Stable: of two that are equally good, the first.
  return known.sort((left, right) => right.quality - left.quality)[0]?.texts;
}

export function otherThan({ language }: Texts): Texts {
  return language === english.language ? german : english;
}
