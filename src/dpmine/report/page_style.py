"""The style of pages that stand alone: light or dark as the reader has it, and a watermark on the owner's."""

from dpmine.report.drawing import COLOURS, FONTS

STYLE = f"""
:root {{ --paper: #FAFBFC; --card: #FFFFFF; --ink: #17202A; --soft: #4A5764; --line: #D5DCE3;
  --first: {COLOURS[0]}; --second: {COLOURS[1]}; --alarm: #A3001B; color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper: #12171D; --card: #1A2129; --ink: #E8EDF2; --soft: #A9B5C1;
  --line: #323D48; --first: {COLOURS[5]}; --second: {COLOURS[1]}; --alarm: #C22A42; }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 {FONTS}; overflow-wrap: break-word; }}
header {{ display: contents; }} /* so that a banner sticks to the top of the whole page, not of its header alone */
main {{ max-width: 1000px; margin: 0 auto; padding: 24px 20px 40px; }}
h1 {{ font-size: 1.7em; line-height: 1.2; margin: 8px 0 16px; }}
h2 {{ font-size: 1.2em; margin: 32px 0 10px; }}
h3 {{ font-size: 1em; margin: 0 0 6px; }}
p, ul {{ max-width: 75ch; margin: 0 0 10px; }}
ul {{ padding-left: 20px; }}
footer, summary, caption, dt, .legend {{ color: var(--soft); }}
footer {{ margin-top: 32px; font-size: 0.85em; }}
.facts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 10px; margin: 0; }}
.facts div, figure {{ background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; }}
dt {{ font-size: 0.82em; }}
dd {{ margin: 0; font-weight: 600; overflow-wrap: anywhere; }}
.grid {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 14px;
  align-items: start; }}
figure {{ margin: 0; min-width: 0; }}
svg {{ max-width: 100%; height: auto; display: block; color: var(--ink); }}
.grid svg {{ width: 100%; max-width: 560px; }}
.narrow {{ display: none; }}
svg .first {{ fill: var(--first); }}
svg .second {{ fill: var(--second); }}
.swatch {{ display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin: 0 6px 0 12px; }}
.swatch.first {{ background: var(--first); margin-left: 0; }}
.swatch.second {{ background: var(--second); }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; min-width: min(100%, 26em); margin: 0 0 12px; font-size: 0.93em; }}
caption {{ text-align: left; font-size: 0.9em; padding: 4px 0; }}
th, td {{ text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }}
th:last-child, td:last-child {{ padding-right: 0; }}
thead th {{ color: var(--soft); font-weight: 600; }}
tbody th {{ font-weight: 400; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.banner {{ position: sticky; top: 0; z-index: 2; max-width: none; background: var(--alarm); color: #FFFFFF; font-weight: 700;
  padding: 10px 14px; border-radius: 6px; }}
.mark {{ color: #FFFFFF; background: var(--alarm); font-size: 0.8em; font-weight: 600; padding: 2px 8px; border-radius: 4px;
  display: inline-block; }}
body.owner::before {{ content: "OWNER ONLY"; position: fixed; inset: 0; z-index: 1; pointer-events: none; display: grid;
  place-items: center; font-size: 11vw; white-space: nowrap; font-weight: 800; opacity: 0.06; transform: rotate(-24deg); }}
@media (max-width: 600px) {{ .wide {{ display: none; }} .narrow {{ display: block; }}
  table {{ font-size: 0.85em; }} th, td {{ padding-right: 8px; }} td:last-child:not(.number) {{ min-width: 9em; }}
  caption {{ max-width: calc(100vw - 40px); }} }}
@media print {{ .banner {{ position: static; }} .banner, .mark, .swatch {{ print-color-adjust: exact; }}
  .grid {{ grid-template-columns: 1fr 1fr; }} figure, tr, caption {{ break-inside: avoid; }}
  h2, h3, caption {{ break-after: avoid; }} }}
"""
