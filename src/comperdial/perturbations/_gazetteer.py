"""Common names by kind, for texts without capitals and for data sets that name too little to choose from."""

from __future__ import annotations

from comperdial.perturbations._text import word_set


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


KINDS: dict[str, tuple[str, ...]] = {
    "person": _names(
        "Alice, Andrew, Anna, Anthony, Barbara, Ben, Brian, Carlos, Caroline, Catherine, Charles, Charlie, Christine,"
        "Daniel, David, Deborah, Dennis, Diana, Edward, Elena, Elizabeth, Emily, Emma, Eric, Ethan, Frank, George,"
        "Hannah, Harry, Helen, Henry, Jack, Jacob, James, Jane, Jason, Jennifer, Jessica, Jim, Joe, John, Joseph,"
        "Josh, Joshua, Julia, Karen, Kate, Kevin, Laura, Leo, Liam, Linda, Lisa, Lucas, Lucy, Maria, Martin, Mary,"
        "Matthew, Max, Michael, Mike, Monica, Nancy, Nathan, Noah, Oliver, Olivia, Patricia, Paul, Peter, Rachel,"
        "Richard, Robert, Ryan, Sam, Samantha, Sandra, Sarah, Simon, Sophia, Stephen, Steve, Steven, Susan, Thomas,"
        "Tim, Tom, Victoria, William"
    ),
    "place": _names(
        "Africa, Alabama, Alaska, Amsterdam, Arizona, Asia, Athens, Atlanta, Australia, Austria, Baltimore, Barcelona,"
        "Beijing, Berlin, Boston, Brazil, Britain, California, Cambridge, Canada, Chicago, Chile, China, Colorado,"
        "Cuba, Dallas, Denver, Detroit, Dublin, Egypt, England, Europe, Finland, Florida, France, Germany, Greece,"
        "Hawaii, Houston, Iceland, Illinois, India, Ireland, Istanbul, Italy, Japan, Kansas, Kentucky, Kenya, Korea,"
        "Las Vegas, Lisbon, London, Los Angeles, Louisiana, Madrid, Mexico, Miami, Michigan, Minnesota, Montana,"
        "Moscow, Nevada, New Jersey, New York, New Zealand, Norway, Ohio, Oklahoma, Oregon, Oxford, Paris,"
        "Pennsylvania, Peru, Philadelphia, Poland, Portland, Portugal, Rome, Russia, San Diego, San Francisco,"
        "Scotland, Seattle, Seoul, Shanghai, Spain, Sweden, Switzerland, Sydney, Texas, Thailand, Tokyo, Toronto,"
        "Utah, Vermont, Vienna, Vietnam, Virginia, Wisconsin"
    ),
    "language": _names(
        "African, American, Arabic, Asian, Australian, Brazilian, British, Canadian, Chinese, Dutch, Egyptian, English,"
        "European, French, German, Greek, Indian, Irish, Italian, Japanese, Korean, Mexican, Norwegian, Polish,"
        "Portuguese, Russian, Scottish, Spanish, Swedish, Thai, Turkish, Vietnamese"
    ),
    "weekday": _names("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    "month": _names("January, February, March, April, May, June, July, August, September, October, November, December"),
    "number": _names(
        "two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fifteen, twenty, thirty, forty, fifty,"
        "sixty, seventy, eighty, ninety"
    ),
}
# Words as well as names: taken for names with a capital only.
AMBIGUOUS = word_set("may march august april june frank jack mark max grace rose will bill chase josh sam tom polish")
SPELLED = {name.lower(): name for names in KINDS.values() for name in names}
