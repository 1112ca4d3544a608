/* Search results: pages for users first, then the reference, then evidence and development. */
const FOLDERS = { start: 12, guide: 10, howto: 10, tutorials: 8, concepts: 6, migration: 4, reference: 0, evidence: -4, development: -12 };
var Scorer = {
  score: (result) => {
    const [docname, , , , score] = result;
    return score + (FOLDERS[docname.split("/")[0]] ?? 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
